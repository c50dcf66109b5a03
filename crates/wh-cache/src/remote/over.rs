//! The port for a backend that is a [`Remote`](super::Remote) with a store of its own.

/// Implements the port for a type with a field `cache` that is a [`Remote`].
macro_rules! over_remote {
    ($own:ty) => {
        #[async_trait::async_trait]
        impl $crate::Cache for $own {
            async fn snapshot(&self, view: &$crate::View) -> $crate::Snapshot {
                self.cache.snapshot(view).await
            }
            async fn get(&self, at: &$crate::Snapshot, key: &$crate::Key) -> $crate::Outcome {
                self.cache.get(at, key).await
            }
            async fn lookup(&self, view: &$crate::View, key: &$crate::Key) -> $crate::Found {
                self.cache.lookup(view, key).await
            }
            async fn put(
                &self,
                at: &$crate::Snapshot,
                key: &$crate::Key,
                value: bytes::Bytes,
                ttl: std::time::Duration,
            ) -> $crate::Result<$crate::Filled> {
                self.cache.put(at, key, value, ttl).await
            }
            async fn invalidate(&self, changes: &[$crate::Change]) -> Vec<$crate::Result<$crate::Landing>> {
                self.cache.invalidate(changes).await
            }
            fn status(&self) -> $crate::Status {
                self.cache.status()
            }
            async fn close(&self) {
                self.cache.close().await
            }
        }
    };
}
pub(crate) use over_remote;
