//! When a certificate begins and ends, read from the certificate itself: the day its file was written says nothing.
//!
//! Leaves out: everything else in a certificate. Whether it may be believed is not asked here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERAL_TIME: u8 = 0x18;
const DAY_S: u64 = 24 * 3600;

/// The time for which a certificate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Its first second.
    pub begins: SystemTime,
    /// Its last second.
    pub ends: SystemTime,
}

impl Life {
    /// How long it still holds; nothing once it is over.
    pub fn left(&self, now: SystemTime) -> Duration {
        self.ends.duration_since(now).unwrap_or_default()
    }

    /// Whether a third of it has passed: then it is time for the next certificate.
    pub fn is_old(&self, now: SystemTime) -> bool {
        let whole = self.ends.duration_since(self.begins).unwrap_or_default();
        self.left(now) <= whole - whole / 3
    }

    /// Whether it is over.
    pub fn is_over(&self, now: SystemTime) -> bool {
        self.left(now).is_zero()
    }
}

/// The life of a certificate; none if it cannot be read.
pub fn life_of(certificate: &CertificateDer<'_>) -> Option<Life> {
    let (whole, _) = read(certificate, SEQUENCE)?;
    let (mut rest, _) = read(whole, SEQUENCE)?;
    if let Some((_, after)) = read(rest, VERSION) {
        rest = after;
    }
    // Number, kind of signature, issuer.
    for _ in 0..3 {
        rest = part(rest)?.2;
    }
    let (dates, _) = read(rest, SEQUENCE)?;
    let (begins, rest) = read_time(dates)?;
    let (ends, _) = read_time(rest)?;
    Some(Life { begins, ends })
}

/// The first part: its kind, its content, and what follows.
fn part(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        // The length of the length: two bytes are enough for any certificate of ours, four for any at all.
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |sum, digit| (sum << 8) | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*kind, content, rest))
}

fn read(bytes: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (kind, content, rest) = part(bytes)?;
    (kind == wanted).then_some((content, rest))
}

fn read_time(bytes: &[u8]) -> Option<(SystemTime, &[u8])> {
    let (kind, content, rest) = part(bytes)?;
    let text = std::str::from_utf8(content).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, text) = match kind {
        GENERAL_TIME => (text.get(..4)?.parse::<u64>().ok()?, text.get(4..)?),
        // Two digits: 1950 to 2049.
        UTC_TIME => match text.get(..2)?.parse::<u64>().ok()? {
            year @ 0..50 => (2000 + year, text.get(2..)?),
            year => (1900 + year, text.get(2..)?),
        },
        _ => return None,
    };
    if text.len() != 10 {
        return None;
    }
    let number = |place: usize| text.get(place..place + 2)?.parse::<u64>().ok();
    let (month, day) = (number(0)?, number(2)?);
    let seconds = number(4)? * 3600 + number(6)? * 60 + number(8)?;
    let days = days_since_1970(year, month, day)?;
    Some((UNIX_EPOCH + Duration::from_secs(days * DAY_S + seconds), rest))
}

/// Days from the first of January 1970 to a day of our calendar.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the odd day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leaps + (month * 153 + 2) / 5 + day - 1;
    // Days from the first of March of the year 0 to 1970.
    days.checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Authority;
    use crate::tls::authority::new_key;
    use rustls::pki_types::pem::PemObject;

    fn certificate(until: SystemTime) -> CertificateDer<'static> {
        let (authority, _, _) = Authority::make(7).unwrap();
        let key = new_key().unwrap();
        let pem = authority.sign_until(1, key.public_key_raw(), &[], until).unwrap();
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    #[test]
    fn x_2_the_end_of_a_certificate_is_read_from_it() {
        // Both forms of a date, and days around leap years.
        for seconds in [1_800_000_000, 1_835_438_400, 2_524_607_999, 2_524_608_000, 4_107_542_400] {
            let until = UNIX_EPOCH + Duration::from_secs(seconds);
            let life = life_of(&certificate(until)).unwrap();
            assert_eq!(life.ends, until);
            let age = SystemTime::now().duration_since(life.begins).unwrap();
            assert!(age > Duration::from_secs(3_000) && age < Duration::from_secs(4_200));
        }
    }

    #[test]
    fn x_2_a_certificate_is_old_after_a_third_of_its_life() {
        let at = |day: u64| UNIX_EPOCH + Duration::from_secs(day * DAY_S);
        let life = Life { begins: at(100), ends: at(190) };
        assert!(!life.is_old(at(129)) && life.is_old(at(130)) && !life.is_over(at(189)));
        assert!(life.is_over(at(190)) && life.left(at(188)) == Duration::from_secs(2 * DAY_S));
    }

    #[test]
    fn x_2_what_is_no_certificate_has_no_dates() {
        let good = certificate(SystemTime::now());
        for length in 0..good.len().min(120) {
            let cut = CertificateDer::from(good[..length].to_vec());
            assert_eq!(life_of(&cut), None, "{length}");
        }
        for place in 0..good.len() {
            for value in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut damaged = good.to_vec();
                damaged[place] = value;
                let _ = life_of(&CertificateDer::from(damaged));
            }
        }
    }
}
