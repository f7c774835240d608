/** Bars as SVG. They repeat numbers that stand beside them as text, so screen readers skip them. */
import { markup, type Html } from './html.ts';

export interface Segment {
  /** Class of its color in the style sheet. */
  readonly color: string;
  /** Part of the whole bar, between 0 and 1. */
  readonly part: number;
}

const width = 1000;
const gap = 3;

/** One bar of segments in a row, as wide as its place. */
export function bar(segments: readonly Segment[]): Html {
  let x = 0;
  const shown = segments.filter(({ part }) => part > 0);
  const drawn = shown.map(({ color, part }) => {
    const start = x;
    x += part * width;
    // A gap between neighbors, so that they differ without their colors; the smallest part stays visible.
    const length = Math.max(part * width - gap, 2);
    return markup`<rect class="fill-${color}" x="${rounded(start)}" width="${rounded(length)}" height="16" />`;
  });
  return markup`<svg
    class="bar"
    viewBox="0 0 ${width} 16"
    preserveAspectRatio="none"
    aria-hidden="true"
    focusable="false"
  >
    ${drawn}
  </svg>`;
}

/** The color of a state, as a square. */
export function swatch(color: string): Html {
  return markup`<svg class="swatch" viewBox="0 0 10 10" aria-hidden="true" focusable="false">
    <rect class="fill-${color}" width="10" height="10" />
  </svg>`;
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}
