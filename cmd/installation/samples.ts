/** Reads a page of metrics in the Prometheus text format, as `createMetrics` writes it. */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/gy;
const escapes: Readonly<Record<string, string>> = { n: '\n' };

/** Our longest line has about 200 characters. */
const maxLine = 2048;

/** The samples of a page. Other lines are ignored. */
export function parseSamples(text: string): readonly Sample[] {
  return text.split('\n').flatMap((each) => {
    if (each.length > maxLine) return [];
    const [, name, labels = '', value = ''] = line.exec(each) ?? [];
    return name === undefined ? [] : [{ name, labels: labelsOf(labels), value: Number(value) }];
  });
}

function labelsOf(text: string): Sample['labels'] {
  const found = [...text.matchAll(label)].map(([, name = '', value = '']) => [
    name,
    value.replaceAll(/\\(.)/g, (_, character: string) => escapes[character] ?? character),
  ]);
  return Object.fromEntries(found) as Sample['labels'];
}

export class Samples {
  readonly #samples: readonly Sample[];

  constructor(samples: readonly Sample[]) {
    this.#samples = samples;
  }

  all(name: string): readonly Sample[] {
    return this.#samples.filter((sample) => sample.name === name);
  }

  value(name: string, labels: Sample['labels'] = {}): number | undefined {
    return this.all(name).find((sample) => hasLabels(sample, labels))?.value;
  }

  /** A label of the only sample of a metric. */
  label(name: string, key: string): string | undefined {
    return this.all(name)[0]?.labels[key];
  }

  /** The values above 0, by a label. */
  counts(name: string, key: string): Readonly<Record<string, number>> {
    const positive = this.all(name).filter(({ value }) => value > 0);
    return Object.fromEntries(positive.map(({ labels, value }) => [labels[key] ?? '', value]));
  }
}

function hasLabels(sample: Sample, labels: Sample['labels']): boolean {
  return Object.entries(labels).every(([key, value]) => sample.labels[key] === value);
}
