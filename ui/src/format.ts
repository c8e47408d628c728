// Figures for people, in the words of `crates/report/src/units.rs`: a unit on every number, three significant digits.

type Value = number | null | undefined;

const THIN = '\u202f';

/** Digits in groups of three. */
export function count(value: Value): string {
  if (value == null || !isFinite(value)) return '–';
  return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, THIN);
}

function digits(value: number): string {
  const size = Math.abs(value);
  return size < 9.995 ? value.toFixed(2) : size < 99.95 ? value.toFixed(1) : count(value);
}

function scaled(value: number, units: [string, number][]): string {
  const idx = units.findIndex((_, i) => i === units.length - 1 || Math.abs(value) < units[i + 1]![1] * 0.9995);
  const [name, size] = units[idx]!;
  return `${size === 1 && Number.isInteger(value) ? count(value) : digits(value / size)} ${name}`;
}

export function time(us: Value): string {
  if (us == null) return '–';
  return scaled(us * 1e3, [['ns', 1], ['µs', 1e3], ['ms', 1e6], ['s', 1e9]]);
}

export function bytes(value: Value): string {
  if (value == null) return '–';
  return scaled(value, [['B', 1], ['KiB', 1024], ['MiB', 1024 ** 2], ['GiB', 1024 ** 3], ['TiB', 1024 ** 4], ['PiB', 1024 ** 5]]);
}

export function short(value: Value): string {
  if (value == null) return '–';
  return Math.abs(value) < 1e4 ? (Number.isInteger(value) ? count(value) : digits(value)) : scaled(value, [['k', 1e3], ['M', 1e6], ['G', 1e9], ['T', 1e12]]);
}

export function rate(value: Value): string {
  if (value == null) return '–';
  return `${value >= 1e6 ? scaled(value, [['M', 1e6], ['G', 1e9]]) : value >= 99.95 ? count(value) : digits(value)}/s`;
}

export function percent(share: Value): string {
  if (share == null) return '–';
  const value = share * 100;
  if (value === 0) return '0 %';
  if (value > 0 && value < 0.005) return '< 0.01 %';
  if (value >= 99.95 && value < 100) return '> 99.9 %';
  return `${digits(value)} %`;
}

/** A moment in a run: `0:07`, `12:05`, `1:02:03`; tenths and hundredths where steps are that small. */
export function clock(seconds: number, step = 1): string {
  const part = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (step < 1 && hours === 0) {
    const digits = step < 0.1 ? 2 : 1;
    return `${minutes}:${(seconds % 60).toFixed(digits).padStart(digits + 3, '0')}`;
  }
  return hours > 0 ? `${hours}:${part(minutes)}:${part(seconds % 60)}` : `${minutes}:${part(seconds % 60)}`;
}

export function span(seconds: number): string {
  if (seconds < 59.5) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return hours > 0 ? `${hours} h ${minutes} min` : rest > 0 ? `${minutes} min ${rest} s` : `${minutes} min`;
}

/** A value in the unit that a threshold or a watched figure names. */
export function inUnit(value: Value, unit: string): string {
  switch (unit) {
    case 'us': return time(value);
    case 'fraction': return percent(value);
    case 'percent': return value == null ? '–' : `${digits(value)} %`;
    case 'bytes': return bytes(value);
    case 'bytes_per_second': return value == null ? '–' : `${bytes(value)}/s`;
    case 'per_second': return rate(value);
    case 'seconds': return time(value == null ? null : value * 1e6);
    default: return short(value);
  }
}

/** `p99.9` for 3 nines. */
export function percentile(nines: number): string {
  const value = 100 * (1 - 10 ** -nines);
  return `p${Number(value.toFixed(Math.max(0, Math.ceil(nines - 1.0001)) + 1))}`;
}
