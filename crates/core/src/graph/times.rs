//! Times as files have them: ISO dates and seconds since 1970, as microseconds of UTC.

/// Which rows of a table are read: those whose time is in [since, until).
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The field with the time.
    pub field: usize,
    /// The first microsecond inside.
    pub since: i64,
    /// The first microsecond after it.
    pub until: i64,
    /// Whether the ends were given as dates; see [`instant`].
    pub dates: bool,
}

impl Window {
    /// Whether a time is inside; `None` if it cannot be read.
    pub fn holds(&self, text: &str) -> Option<bool> {
        instant(text, self.dates).map(|time| (self.since..self.until).contains(&time))
    }
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400;
/// The seconds of the years 1 to 9999; what lies outside is in other units.
const EARLIEST: i64 = -62_135_596_800;
const LATEST: i64 = 253_402_300_800;
/// Numbers below this, from the first three years after 1970, are rather dates such as 20240131.
const SMALL: i64 = 100_000_000;

/// The microseconds since 1970 of an ISO date, with or without a time of day, or of a number of
/// seconds. A time without a zone is in UTC; what is finer than a microsecond is cut off.
///
/// Beside `dates`, a small number is not taken for seconds: it would be a date in disguise.
pub fn instant(text: &str, dates: bool) -> Option<i64> {
    let text = text.trim();
    seconds(text, if dates { SMALL } else { 0 }).or_else(|| iso(text))
}

fn seconds(text: &str, least: i64) -> Option<i64> {
    let plain = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = plain.split_once('.').unwrap_or((plain, "0"));
    let (whole, (part, finer)) = (whole_number(whole, 1..=12)?, fraction(part)?);
    let value = if plain.len() == text.len() {
        whole * SECOND + part
    } else {
        // The cut is towards the past on both sides of 1970.
        -(whole * SECOND + part) - i64::from(finer)
    };
    let known = (EARLIEST * SECOND..LATEST * SECOND).contains(&value);
    (known && whole >= least).then_some(value)
}

fn iso(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.split('-');
    let year = whole_number(parts.next()?, 4..=4)?;
    let month = whole_number(parts.next()?, 2..=2)?;
    let day = whole_number(parts.next()?, 2..=2)?;
    if parts.next().is_some() || year < 1 || !(1..=12).contains(&month) {
        return None;
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let long = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !(1..=long).contains(&day) {
        return None;
    }
    let start = days(year, month, day) * DAY * SECOND;
    match rest.strip_prefix(['T', 't', ' ']) {
        Some(time) => clock(time).map(|time| start + time),
        None => rest.is_empty().then_some(start),
    }
}

/// The days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin with March here, so that the leap day is the last of its year.
    let year = year - i64::from(month <= 2);
    let before = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + before - 719_468
}

/// The microseconds of hh:mm, hh:mm:ss or hh:mm:ss.f, less those of the zone behind them.
fn clock(text: &str) -> Option<i64> {
    let end = text
        .find(|c: char| !matches!(c, '0'..='9' | ':' | '.'))
        .unwrap_or(text.len());
    let (time, zone) = text.split_at(end);
    let (time, part) = time.split_once('.').unwrap_or((time, "0"));
    let mut parts = time.split(':');
    let hour = whole_number(parts.next()?, 2..=2)?;
    let minute = whole_number(parts.next()?, 2..=2)?;
    let last = parts.next();
    let second = last.map_or(Some(0), |second| whole_number(second, 2..=2))?;
    let cut = last.is_none() && text[..end].contains('.');
    if cut || parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let time = (hour * 60 + minute) * 60 + second - offset(zone)?;
    Some(time * SECOND + fraction(part)?.0)
}

/// The seconds by which a zone (nothing, Z, +hh, +hhmm or +hh:mm) is before UTC.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "Z" | "z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let rest = zone.strip_prefix(['+', '-'])?;
    let (hour, minute) = rest.split_at_checked(2)?;
    let minute = minute.strip_prefix(':').unwrap_or(minute);
    let hour = whole_number(hour, 2..=2)?;
    let minute = match (minute, rest.len()) {
        ("", 2) => 0,
        _ => whole_number(minute, 2..=2)?,
    };
    (hour <= 23 && minute <= 59).then_some(sign * (hour * 60 + minute) * 60)
}

/// Microseconds from the digits behind a point, and whether something finer was cut off.
fn fraction(text: &str) -> Option<(i64, bool)> {
    let (kept, finer) = text.split_at_checked(text.len().min(6))?;
    let scale = 10i64.pow(6 - kept.len() as u32);
    let cut = !finer.is_empty() && whole_number(finer, 1..=18)? != 0;
    Some((whole_number(kept, 1..=6)? * scale, cut))
}

fn whole_number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<i64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    (plain && digits.contains(&text.len()))
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<i64> {
        instant(text, false)
    }

    #[test]
    fn dates_and_times() {
        assert_eq!(read("1970-01-01"), Some(0));
        assert_eq!(read(" 2000-03-01 "), Some(951_868_800 * SECOND));
        assert_eq!(read("1969-12-31T23:59:59"), Some(-SECOND));
        assert_eq!(read("2024-02-29T12:30:15.25Z"), Some(1_709_209_815_250_000));
        let noon = read("2024-02-29T12:00");
        for same in [
            "2024-02-29 12:00:00",
            "2024-02-29T14:00+02:00",
            "2024-02-29T06:30:00-0530",
            "2024-02-29t13:00:00.0000001+01",
        ] {
            assert_eq!(read(same), noon, "{same}");
        }
        assert_eq!(read("0001-01-01"), Some(EARLIEST * SECOND));
        assert_eq!(read("9999-12-31"), Some((LATEST - DAY) * SECOND));
    }

    #[test]
    fn every_day_is_one_after_the_day_before() {
        let mut last = days(1599, 12, 31);
        for year in 1600..2401 {
            for month in 1..=12 {
                for day in 1..=31 {
                    let text = format!("{year:04}-{month:02}-{day:02}");
                    if let Some(time) = read(&text) {
                        last += 1;
                        assert_eq!(time, last * DAY * SECOND, "{text}");
                    }
                }
            }
        }
        assert_eq!(last, days(2400, 12, 31));
    }

    #[test]
    fn seconds_since_1970() {
        assert_eq!(read("1709208000"), Some(1_709_208_000 * SECOND));
        assert_eq!(read("0"), Some(0));
        assert_eq!(read("1.5"), Some(1_500_000));
        assert_eq!(read("-1.5"), Some(-1_500_000));
        assert_eq!(read("-1.0000001"), Some(-1_000_001));
        assert_eq!(read("1709208000000"), None); // milliseconds
        assert_eq!(instant("1709208000", true), Some(1_709_208_000 * SECOND));
        assert_eq!(instant("20240131", true), None);
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            "x",
            "31.01.2024",
            "2024-1-1",
            "2024-02-30",
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "0000-01-01",
            "2024-01-01T",
            "2024-01-01T12",
            "2024-01-01T24:00",
            "2024-01-01T12:60",
            "2024-01-01T12:00:61",
            "2024-01-01T12:00.5",
            "2024-01-01T12:00:00.",
            "2024-01-01x",
            "2024-01-01T12:00:00+1",
            "2024-01-01T12:00:00+01:",
            "2024-01-01T12:00é",
            "2024-01-0é",
            "1e9",
            "+5",
            "-",
            ".",
            "1.",
            "2024-01-01T12:00:00+24:00",
            "--1",
            "1.éééé",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
