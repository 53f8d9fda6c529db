//! Jitter: how much later than its nominal time an action is due.
//!
//! It is a function of the nominal time and a seed, so that the same nominal time has the same jitter whenever and
//! wherever it is asked for. The hash is FarmHash's Fingerprint32 over Go's binary form of the time and the seed, as in
//! Temporal's server; it belongs to a level of decisions.

/// How late the action of a nominal time is, in ms: at least 0, and less than `bound_ms` where that is positive.
pub fn jitter_ms(nominal_s: i64, seed: &str, bound_ms: i64) -> i64 {
    let bound_ms = u64::try_from(bound_ms).unwrap_or(0).min(u32::MAX.into());
    let hash = fingerprint32(&hashed_bytes(nominal_s, seed));
    // Of two numbers of 32 bits: it is less than the second.
    ((u64::from(hash) * bound_ms) >> 32) as i64
}

/// Seconds from the beginning of year 1 to that of 1970, from where Go counts.
const GO_EPOCH_S: i64 = 62_135_596_800;
const TIME_BYTES: usize = 15;

/// Version 1, seconds since year 1, nanoseconds, and -1 for UTC in two bytes; then the seed.
fn hashed_bytes(nominal_s: i64, seed: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(TIME_BYTES + seed.len());
    bytes.push(1);
    bytes.extend_from_slice(&nominal_s.wrapping_add(GO_EPOCH_S).to_be_bytes());
    bytes.extend_from_slice(&0_u32.to_be_bytes());
    bytes.extend_from_slice(&(-1_i16).to_be_bytes());
    bytes.extend_from_slice(seed.as_bytes());
    bytes
}

const C1: u32 = 0xcc9e_2d51;
const C2: u32 = 0x1b87_3593;
const ADDED: u32 = 0xe654_6b64;

fn times_five(hash: u32) -> u32 {
    hash.rotate_right(19).wrapping_mul(5).wrapping_add(ADDED)
}

/// Murmur3's way to take one more word in.
fn mur(word: u32, hash: u32) -> u32 {
    times_five(hash ^ word.wrapping_mul(C1).rotate_right(17).wrapping_mul(C2))
}

/// Murmur3's last step.
fn mixed(mut hash: u32) -> u32 {
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

/// The word in little endian at a place; all places that are asked for are inside.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |word, byte| (word << 8) | u32::from(*byte))
}

/// FarmHash's Fingerprint32 of at least 13 bytes, which a time and a seed always have.
fn fingerprint32(bytes: &[u8]) -> u32 {
    if bytes.len() <= 24 { of_13_to_24(bytes) } else { of_longer(bytes) }
}

fn of_13_to_24(bytes: &[u8]) -> u32 {
    let (length, half) = (bytes.len(), bytes.len() / 2);
    let (middle, second, behind) = (word(bytes, half - 4), word(bytes, 4), word(bytes, length - 8));
    let (center, first, last) = (word(bytes, half), word(bytes, 0), word(bytes, length - 4));
    let mut hash = center.wrapping_mul(C1).wrapping_add(length as u32);
    let mut sum = middle.rotate_right(12).wrapping_add(last);
    hash = mur(behind, hash).wrapping_add(sum);
    sum = sum.rotate_right(3).wrapping_add(behind);
    hash = mur(first, hash).wrapping_add(sum);
    sum = sum.wrapping_add(last).rotate_right(12).wrapping_add(center);
    hash = mur(second, hash).wrapping_add(sum);
    mixed(hash)
}

fn of_longer(bytes: &[u8]) -> u32 {
    let length = bytes.len();
    let tail = |back: usize| word(bytes, length - back).wrapping_mul(C1).rotate_right(17).wrapping_mul(C2);
    let mut h = length as u32;
    let mut g = C1.wrapping_mul(length as u32);
    let mut f = g;
    h = times_five(times_five(h ^ tail(4)) ^ tail(16));
    g = times_five(times_five(g ^ tail(8)) ^ tail(12));
    f = f.wrapping_add(tail(20)).rotate_right(19).wrapping_add(113);
    // The last block, whole or not, is taken in above only.
    for at in (0..(length - 1) / 20).map(|block| block * 20) {
        let [a, b, c, d, e] = [0, 4, 8, 12, 16].map(|offset| word(bytes, at + offset));
        h = h.wrapping_add(a);
        g = g.wrapping_add(b);
        f = f.wrapping_add(c);
        h = mur(d, h).wrapping_add(e);
        g = mur(c, g).wrapping_add(a);
        f = mur(b.wrapping_add(e.wrapping_mul(C1)), f).wrapping_add(d);
        f = f.wrapping_add(g);
        g = g.wrapping_add(f);
    }
    g = g.rotate_right(11).wrapping_mul(C1).rotate_right(17).wrapping_mul(C1);
    f = f.rotate_right(11).wrapping_mul(C1).rotate_right(17).wrapping_mul(C1);
    h = times_five(h.wrapping_add(g)).rotate_right(17).wrapping_mul(C1);
    times_five(h.wrapping_add(f)).rotate_right(17).wrapping_mul(C1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_S: i64 = 60;
    /// 2022-03-23 09:00:00 UTC.
    const MORNING_S: i64 = 1_648_026_000;

    #[test]
    fn it_is_that_of_the_server() {
        let of = |place: i64, bound_ms| jitter_ms(MORNING_S + place * 90 * MINUTE_S, "", bound_ms);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|place| of(place, 1_000)), [235, 139, 162, 587, 89, 687]);
        let clock =
            |hour: i64, minute: i64, second: i64, ms: i64| ((hour * 60 + minute) * 60 + second) * 1_000 + ms;
        let noon = clock(12, 0, 0, 0);
        let expected = [clock(12, 14, 36, 524), clock(14, 22, 54, 562), clock(15, 8, 3, 724)];
        let slots = [2, 3, 4].map(|place| of(place, 90 * 60 * 1_000) + noon + (place - 2) * 90 * 60 * 1_000);
        assert_eq!(slots, expected);
    }

    /// Computed by the server's own library (github.com/dgryski/go-farm), for each length that is treated apart.
    #[test]
    fn the_hash_of_longer_seeds_is_that_of_the_server() {
        let seeds = HASHES.map(|(length, _)| "0123456789abcdef".repeat(5)[..length].to_owned());
        let hashes = seeds.map(|seed| fingerprint32(&hashed_bytes(MORNING_S, &seed)));
        assert_eq!(hashes, HASHES.map(|(_, hash)| hash));
    }

    const HASHES: [(usize, u32); 8] = [
        (0, 0x3c57_aadf),
        (9, 0xa2c7_08f0),
        (10, 0x1781_f477),
        (25, 0xe489_a32c),
        (26, 0xc2ab_3ec9),
        (45, 0xaccd_c3bb),
        (46, 0x52df_ef38),
        (73, 0x4706_7699),
    ];

    #[test]
    fn it_is_less_than_its_bound_and_never_negative() {
        for bound_ms in [i64::MIN, -1, 0, 1, 2, 1_000, i64::from(u32::MAX), i64::MAX] {
            for nominal_s in [i64::MIN, -1, 0, MORNING_S, i64::MAX] {
                let jitter_ms = jitter_ms(nominal_s, "namespace-schedule", bound_ms);
                assert!((0..bound_ms.max(1)).contains(&jitter_ms), "{jitter_ms} of {bound_ms}");
            }
        }
    }
}
