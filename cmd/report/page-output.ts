/**
 * The page of `--html FILE` and `--publish`, and what every output has of it: money and newer tags. The code of
 * the page is loaded only for it.
 */
import { constants } from 'node:fs';
import { access, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { decodeUtf8, FileError, readBounded, writeProblem } from '../../src/files/read.ts';
import type { Node } from '../../src/kube/api/objects.ts';
import type { Cluster } from '../wiring/cluster.ts';
import { UsageError } from '../program/exit.ts';
import type { ReportCall } from './flags.ts';
import { programVersion } from '../program/version.ts';
import type { PriceBook } from './prices/price-book.ts';
import type { PriceList } from './prices/price-file.ts';
import type { JudgedPods } from './judged-pods.ts';
import type { JudgedPod } from './rows.ts';
import type { Report, ReportExtras } from './write.ts';

/** 5,000 entries of the size of the example. */
const maxPriceBytes = 1024 * 1024;

/**
 * A folder that cannot be written and a wrong file of prices are errors before the images are looked up.
 * @throws UsageError
 */
export async function pageOutput({ flags, given, io, say, stop }: ReportCall): Promise<PageOutput> {
  const { html: path, prices, publish } = flags;
  const isPage = path !== undefined || publish;
  const [first = '', other] = ['html', 'publish', 'output', 'by'].filter((name) => given.has(name));
  if (isPage && other !== undefined) throw new UsageError(`--${first} and --${other} exclude each other`);
  if (path !== undefined && path !== '-')
    await access(dirname(path), constants.W_OK).catch(unwritable(dirname(path)));
  return new PageOutput({ path, isPage, flags, io, say, stop, list: await priceList(prices) });
}

type Options = Pick<ReportCall, 'flags' | 'io' | 'say' | 'stop'> & {
  /** Absent for `--publish`. */
  readonly path: string | undefined;
  readonly isPage: boolean;
  readonly list: PriceList;
};

export class PageOutput {
  readonly #options: Options;
  #book: PriceBook | undefined;

  constructor(options: Options) {
    this.#options = options;
  }

  get isPage(): boolean {
    return this.#options.isPage;
  }

  /** @returns takes each node, whose annotations and labels may have a price */
  async prices(): Promise<(node: Node) => void> {
    const { PriceBook } = await import('./prices/price-book.ts');
    const book = new PriceBook(this.#options.list);
    this.#book = book;
    return (node) => book.add(node);
  }

  async extras(
    judged: Pick<JudgedPods, 'pods' | 'pullSecrets'> & { readonly architecture: string },
    cluster: Pick<Cluster, 'context'>,
  ): Promise<ReportExtras> {
    const { flags } = this.#options;
    const newerTags = flags.newerTags
      ? await (await import('./tag-search.ts')).searchNewerTags(this.#options, cluster, judged)
      : undefined;
    const money = this.#book?.money(judged.architecture);
    return { ...(newerTags && { newerTags }), ...(money && { money }) };
  }

  async text(
    content: { readonly report: Report; readonly pods: readonly JudgedPod[]; readonly made: Date },
    extras: ReportExtras,
  ): Promise<string> {
    const { reportPage } = await import('./page/page.ts');
    const namespaces = [...new Set(this.#options.flags.namespace)];
    return reportPage({ ...content, ...extras, namespaces, version: programVersion.version });
  }

  /** @throws UsageError if the file cannot be written */
  async write(text: string): Promise<void> {
    const { path = '-', io, say } = this.#options;
    if (path === '-') {
      io.out(text);
      return;
    }
    await writeFile(path, text).catch(unwritable(path));
    say(`${path} written`);
  }
}

async function priceList(path: string | undefined): Promise<PriceList> {
  const { noPriceList, parsePrices } = await import('./prices/price-file.ts');
  if (path === undefined) return noPriceList;
  try {
    return parsePrices(decodeUtf8(await readBounded(path, { maxBytes: maxPriceBytes }), path), path);
  } catch (error) {
    if (error instanceof FileError) throw new UsageError(`--prices: ${error.message}`);
    throw error;
  }
}

function unwritable(path: string): (error: unknown) => never {
  return (error) => {
    throw new UsageError(`--html: ${path}: ${writeProblem(error)}`);
  };
}
