/** Requests as people read them. */

/** To a thousandth, the smallest unit of Kubernetes. */
export function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

const units = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];

/** With three digits at most: `512Mi`, `1.5Gi`. */
export function bytes(value: number): string {
  let unit = 0;
  let left = value;
  while (left >= 1024 && unit < units.length - 1) {
    left /= 1024;
    unit++;
  }
  return `${left < 10 ? Math.round(left * 10) / 10 : Math.round(left)}${units[unit]}`;
}
