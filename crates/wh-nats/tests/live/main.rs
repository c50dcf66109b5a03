//! Real servers, of every release that is supported.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail loudly")]

/// One test for each supported release.
macro_rules! on_each_version {
    ($($test:ident),+ $(,)?) => {
        mod oldest {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(wh_testkit::servers::NATS_VERSIONS[0]).await;
                }
            )+
        }
        mod newest {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(wh_testkit::servers::NATS_VERSIONS[1]).await;
                }
            )+
        }
    };
}

mod api;
mod authority;
mod breaks;
mod bucket;
mod common;
mod connection;
mod direct;
mod jwt;
mod logins;
mod publish;
mod pull;
mod tls;
