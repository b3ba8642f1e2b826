//! FNV-1a: a small hash that is the same on every machine and in every version. Names of files, fingerprints and
//! seeds that are kept or shown are made with it; it keeps no secret and withstands no attacker.

/// The hash of 64 bits.
///
/// ```
/// assert_eq!(proofhouse_wire::fnv::hash_64(*b"foobar"), 0x8594_4171_f739_67e8);
/// ```
#[must_use]
pub fn hash_64(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let bytes = bytes.into_iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The hash of 32 bits.
///
/// ```
/// assert_eq!(proofhouse_wire::fnv::hash_32(*b"foobar"), 0xbf9c_f968);
/// ```
#[must_use]
pub fn hash_32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    let bytes = bytes.into_iter();
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
