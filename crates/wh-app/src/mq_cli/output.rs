//! Where a command prints, remembering whether what it printed arrived: a manifest cut short is no manifest.

use std::io::{self, Write};

/// A writer that keeps its first failure.
pub(super) struct Output<'a> {
    to: &'a mut dyn Write,
    failure: Option<io::Error>,
}

impl<'a> Output<'a> {
    pub(super) fn new(to: &'a mut dyn Write) -> Self {
        Self { to, failure: None }
    }

    /// Writes out what is buffered; the failure that there was, unless the reader only left.
    pub(super) fn end(mut self) -> io::Result<()> {
        let flushed = self.flush();
        match self.failure.map_or(flushed, Err) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome,
        }
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes).inspect_err(|error| {
            self.failure.get_or_insert_with(|| error.kind().into());
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Full(io::ErrorKind);
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told_and_a_closed_pipe_is_not() {
        for (kind, told) in [(io::ErrorKind::StorageFull, true), (io::ErrorKind::BrokenPipe, false)] {
            let mut full = Full(kind);
            let mut output = Output::new(&mut full);
            assert!(writeln!(output, "x").is_err());
            assert_eq!(output.end().is_err(), told, "{kind:?}");
        }
    }
}
