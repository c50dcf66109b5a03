//! Who we are and whom we trust, read from files, kept in memory, and read again when the files change.
//!
//! A new version of a file is taken only when it can be used; until then the last good one stays. Whether the open
//! connection is replaced by another depends on what changed:
//!
//! * A user's JWT and a certificate: yes. The rights in a JWT count from the next login on, and a server never looks at
//!   the certificate of an open connection again.
//! * A password, a token, a key's seed: no. A server ends connections whose login it no longer accepts, and the next one
//!   is made with what is in the file then.

mod files;
mod login;
mod tls;

use crate::{Error, Result, connection::Core, options::Options};
use arc_swap::ArcSwap;
use files::Seen;
use login::Login;
use std::{path::PathBuf, sync::Arc};
use tls::Certificates;

/// Logins and certificates.
#[derive(Debug)]
pub(crate) struct Identity {
    sources: Options,
    login: ArcSwap<Login>,
    certificates: Arc<Certificates>,
    tls: rustls::ClientConfig,
}

impl Identity {
    /// Reads everything.
    pub(crate) fn read(options: &Options) -> Result<Self> {
        let login = login::read(&options.credentials)?;
        let certificates = Arc::new(Certificates::read(&options.tls, tls_is_certain(options))?);
        let tls = tls::config(&certificates, options.tls.server_name.as_deref())?;
        Ok(Self { sources: options.clone(), login: ArcSwap::from_pointee(login), certificates, tls })
    }

    pub(crate) fn tls(&self) -> rustls::ClientConfig {
        self.tls.clone()
    }

    /// The login for a server's nonce.
    pub(crate) fn login(&self, nonce: &[u8]) -> Result<async_nats::Auth, String> {
        self.login.load().auth(nonce)
    }
}

fn tls_is_certain(options: &Options) -> bool {
    let tls = &options.tls;
    tls.required
        || tls.handshake_first
        || tls.cert_file.is_some()
        || options.urls.iter().any(|url| url.starts_with("tls:"))
}

/// Looks at the files again and again, and takes what is new.
pub(crate) async fn watch(core: Arc<Core>) {
    let files: Vec<PathBuf> = files::of(&core.identity.sources);
    if files.is_empty() {
        return;
    }
    let mut seen = Seen::of(&files);
    loop {
        tokio::select! {
            biased;
            () = core.stop.wait() => return,
            () = tokio::time::sleep(core.options.watch_interval) => {}
        }
        let now = Seen::of(&files);
        if now == seen {
            continue;
        }
        let taken = core.identity.reread();
        match &taken {
            Ok(replace) => tracing::info!(replace, "changed credentials or certificates for NATS were taken"),
            Err(error) => {
                let error = error.text();
                tracing::warn!(
                    error,
                    "changed credentials or certificates for NATS cannot be used, keeping the others"
                );
            }
        }
        core.files(taken.as_ref().map(|_| ()).map_err(Error::text));
        if matches!(taken, Ok(true)) {
            core.replace(core.generation());
        }
        seen = now;
    }
}

impl Identity {
    /// Reads the files again. Says whether the open connection must be replaced.
    fn reread(&self) -> Result<bool, Error> {
        let login = login::read(&self.sources.credentials)?;
        let changed = self.certificates.reread(&self.sources.tls, tls_is_certain(&self.sources))?;
        let rights = login.has_rights() && login != **self.login.load();
        self.login.store(Arc::new(login));
        Ok(changed || rights)
    }
}
