//! Prints rights for the server's own configuration and for the official Helm chart.

use super::{Right, Rights};

/// How rights are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RightsFormat {
    /// A `permissions` block for a user in the server's configuration file.
    Nats,
    /// Values for the official NATS chart, with the user around them.
    Helm,
}

impl Rights {
    /// The text, ending in a line feed. Every line says what needs it.
    #[must_use]
    pub fn print(&self, format: RightsFormat) -> String {
        let lines = [
            format!(
                "# What the role {} may do; everything else is refused, creating consumers included. Made by:",
                self.role
            ),
            format!("#   {} --format={}", self.made_by(), format.name()),
        ];
        let head = lines.join("\n") + "\n";
        match format {
            RightsFormat::Nats => head + &self.block(),
            RightsFormat::Helm => head + &self.values(),
        }
    }

    fn block(&self) -> String {
        let list = |rights: &[Right]| -> String {
            let width = width(rights);
            let line = |right: &Right| format!("    {:width$}  # {}\n", format!("\"{}\"", right.subject), right.why);
            rights.iter().map(line).collect()
        };
        let (publish, subscribe) = (list(&self.publish), list(&self.subscribe));
        format!(
            "permissions {{\n  publish {{ allow: [\n{publish}  ] }}\n  subscribe {{ allow: [\n{subscribe}  ] }}\n}}\n"
        )
    }

    fn values(&self) -> String {
        let user = self.role.user();
        let secret = user.to_ascii_uppercase().replace('-', "_");
        format!(
            "config:\n  merge:\n    accounts:\n      WAVEHOUSE:\n        jetstream: enabled\n        users:\n          \
             - user: {user}\n            password: << ${secret}_PASSWORD >>\n{}",
            self.permissions(12)
        )
    }

    /// The `permissions` key in YAML, for a user of the chart's values.
    #[must_use]
    pub fn permissions(&self, indent: usize) -> String {
        let pad = " ".repeat(indent);
        let list = |rights: &[Right]| -> String {
            let width = width(rights);
            let line =
                |right: &Right| format!("{pad}      - {:width$}  # {}\n", format!("\"{}\"", right.subject), right.why);
            rights.iter().map(line).collect()
        };
        let (publish, subscribe) = (list(&self.publish), list(&self.subscribe));
        format!(
            "{pad}permissions:\n{pad}  publish:\n{pad}    allow:\n{publish}{pad}  subscribe:\n{pad}    allow:\n{subscribe}"
        )
    }
}

impl RightsFormat {
    /// What the command line calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nats => "nats",
            Self::Helm => "helm",
        }
    }
}

/// The widest subject with its quotes.
fn width(rights: &[Right]) -> usize {
    rights.iter().map(|right| right.subject.len() + 2).max().unwrap_or(0)
}
