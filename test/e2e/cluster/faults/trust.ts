/** Issued objects and the invariants after each kill: Secrets are complete, components trust each other. */
import { ownNames } from '../../../../src/names/own-names.ts';
import {
  readAuthorities,
  trusted,
  type Authorities,
  type Remains,
} from '../../../../src/certificates/authorities.ts';
import {
  leafNames,
  leafSpecs,
  readLeaf,
  type LeafName,
} from '../../../../src/controller/features/certificates/leaves.ts';
import { isIssuedBy, sameCertificates, type Certificate } from '../../../../src/certificates/pem.ts';
import { readCaBundle, type WebhookConfiguration } from '../../../../src/controller/state/ca-bundle.ts';
import { isSame } from '../../../../src/controller/features/webhook-configuration/write.ts';
import type { Webhook } from '../../../../src/controller/state/webhooks-file.ts';
import type { KubeClient } from '../../../../src/kube/api/client.ts';
import { KubeError } from '../../../../src/kube/api/errors.ts';
import type { Secret } from '../../../../src/kube/api/objects.ts';
import { defaultConfiguration } from '../../../../src/policy/configuration/configuration.ts';
import { ownNamespace } from '../archwright/archwright.ts';
import { patience } from '../harness.ts';
import { textsOf } from '../archwright/issued.ts';
import { paths } from '../../../../src/kube/api/paths.ts';

type Leaf = ReturnType<typeof readLeaf>;

export interface Issued {
  readonly authorities: Authorities | Remains;
  readonly leaves: ReadonlyMap<LeafName, Leaf>;
  readonly webhooks: readonly Webhook[];
}

const configuration = defaultConfiguration();

export async function readIssued(client: KubeClient, webhookConfiguration: string): Promise<Issued> {
  async function find<T>(path: string): Promise<T | undefined> {
    return client.get<T>(path, { signal: patience() }).catch((error: unknown) => {
      if (error instanceof KubeError && error.code === 'not-found') return undefined;
      throw error;
    });
  }
  const texts = async (name: string): Promise<Record<string, string> | undefined> =>
    textsOf(await find<Secret>(paths.secrets(ownNamespace, name)));
  // Bundles are written before the certificates that need them, and read after them.
  const leaves = new Map<LeafName, Leaf>();
  for (const { name, secretName } of leafSpecs(configuration, []))
    leaves.set(name, readLeaf(await texts(secretName)));
  const found = await find<WebhookConfiguration>(paths.mutatingWebhookConfigurations(webhookConfiguration));
  return {
    leaves,
    webhooks: found?.webhooks ?? [],
    authorities: readAuthorities((await texts(ownNames(configuration).caSecret)) ?? {}),
  };
}

/** The first must trust the second, by its `ca.crt`. */
const trusts: readonly (readonly [truster: LeafName, trusted: LeafName])[] = [
  ['webhook-client', 'agent'],
  ['controller-client', 'agent'],
  ['agent', 'webhook-client'],
  ['agent', 'controller-client'],
];

/** Violated invariants of the objects that exist. @param wanted the webhooks of the file */
export function violationsIn({ leaves, webhooks }: Issued, wanted: readonly Webhook[]): readonly string[] {
  const wrong: string[] = [];
  const check = (what: string, isSo: boolean): void => void (isSo || wrong.push(what));
  const knows = (bundle: readonly Certificate[] | undefined, certificate: Certificate | undefined): boolean =>
    certificate === undefined || (bundle ?? []).some((each) => isIssuedBy(certificate, each));
  for (const name of leafNames) {
    const leaf = leaves.get(name);
    if (leaf?.texts === undefined) continue;
    const { certificate, keyFits, bundle } = leaf;
    const now = Date.now();
    check(`${name}: the Secret is complete`, certificate !== undefined && keyFits && bundle !== undefined);
    check(
      `${name}: it is valid`,
      certificate !== undefined && certificate.from <= now && now < certificate.to,
    );
    check(`${name}: its authority is in ca.crt`, knows(bundle, certificate));
  }
  for (const [one, other] of trusts) {
    const bundle = leaves.get(one)?.bundle;
    check(`${one} trusts ${other}`, bundle === undefined || knows(bundle, leaves.get(other)?.certificate));
  }
  for (const webhook of webhooks) {
    const asWritten = wanted.find(({ name }) => name === webhook.name);
    if (asWritten === undefined) continue;
    const { caBundle, ...clientConfig } = webhook.clientConfig;
    check(`${webhook.name}: it equals the file`, isSame({ ...webhook, clientConfig }, asWritten));
    check(`${webhook.name}: it has a caBundle`, caBundle !== undefined);
    check(
      `${webhook.name}: the API server trusts it`,
      knows(readCaBundle(webhook.clientConfig.caBundle), leaves.get('webhook')?.certificate),
    );
  }
  return wrong;
}

/** Whether one authority has signed everything and is trusted everywhere, with only the wanted webhooks. */
export function isSettled(issued: Issued, wanted: readonly Webhook[]): boolean {
  const { authorities, leaves, webhooks } = issued;
  if (authorities.newest === undefined || authorities.previous.length > 0) return false;
  const { certificate } = authorities.newest;
  const only = trusted(authorities);
  return (
    violationsIn(issued, wanted).length === 0 &&
    leafNames.every((name) => {
      const leaf = leaves.get(name);
      return (
        leaf?.certificate !== undefined &&
        isIssuedBy(leaf.certificate, certificate) &&
        sameCertificates(leaf.bundle, only)
      );
    }) &&
    isSame(
      webhooks.map(({ name }) => name),
      wanted.map(({ name }) => name),
    ) &&
    webhooks.every((webhook) => sameCertificates(readCaBundle(webhook.clientConfig.caBundle), only))
  );
}
