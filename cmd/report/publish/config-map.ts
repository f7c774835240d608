/** The ConfigMap of a published report: totals as text; the report and the page compressed. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { namedLabels } from '../../../src/controller/write/own-objects.ts';
import { programVersion } from '../../program/version.ts';
import { bytes } from '../amounts.ts';
import type { Report } from '../contents.ts';
import { asJson, jsonTotals } from '../write.ts';
import { jsonText } from '../../program/table.ts';

/** A ConfigMap may have 1 MiB (kubernetes `MaxSecretSize`). 5,000 workloads have 143 KiB, compressed. */
const maxBytes = 1000 * 1024;
const compress = promisify(gzip);

/** @returns with the names and sizes of files that do not fit */
export async function configMapOf(
  report: Report,
  page: string,
  place: { readonly namespace: string; readonly name: string },
) {
  const files = { 'report.html.gz': page, 'report.json.gz': asJson(report) };
  const binaryData: Record<string, string> = {};
  const leftOut: string[] = [];
  let left = maxBytes;
  for (const [file, text] of Object.entries(files)) {
    const compressed = await compress(text);
    if (compressed.length > left) {
      leftOut.push(`${file}, ${bytes(compressed.length)}: a ConfigMap may have 1Mi`);
      continue;
    }
    left -= compressed.length;
    binaryData[file] = compressed.toString('base64');
  }
  const { architecture, namespaces, lookups, made, totals } = report;
  const summary = {
    made: made.toISOString(),
    version: programVersion.version,
    architecture,
    ...(namespaces.length > 0 && { namespaces }),
    lookups,
    totals: jsonTotals(totals),
    leftOut,
  };
  const data = { 'summary.json': jsonText(summary) };
  const metadata = { ...place, labels: namedLabels };
  return { object: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data, binaryData }, leftOut };
}
