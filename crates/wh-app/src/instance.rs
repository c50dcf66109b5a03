//! The name of this process among others.

use wh_types::Entropy;

/// The host's name and 8 random hex digits: two starts on one host differ.
pub(crate) fn name(entropy: &dyn Entropy) -> String {
    let host = rustix::system::uname();
    let host: String = host.nodename().to_string_lossy().chars().take(64).collect();
    format!("{host}-{:08x}", entropy.next_u64() >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::SeededEntropy;

    #[test]
    fn it_is_the_host_and_differs_from_start_to_start() {
        let entropy = SeededEntropy::new(1);
        let (one, two) = (name(&entropy), name(&entropy));
        let (host, digits) = one.rsplit_once('-').unwrap();
        assert!(!host.is_empty() && digits.len() == 8 && u32::from_str_radix(digits, 16).is_ok(), "{one}");
        assert_ne!(one, two);
    }
}
