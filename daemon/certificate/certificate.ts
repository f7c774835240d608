/**
 * The agent's own certificate, for the name of its node. The agent makes a key, requests a certificate by a
 * CertificateSigningRequest with the token of its pod, and writes both to a directory in memory, which its
 * server follows. The key never leaves the node. While no controller answers, the agent works on until the
 * certificate expires.
 */
import { X509Certificate } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { backOffMs, type BackOff, type Clock } from '../../src/async/clock.ts';
import { unlessAborted } from '../../src/async/wait.ts';
import { liveContent, type LiveContent } from '../../src/files/live.ts';
import { readText } from '../../src/files/read.ts';
import {
  agentNameOn,
  agentRequestName,
  agentSigner,
  agentUsages,
  maxAgentRequests,
} from '../../src/certificates/agent-names.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { ignoring } from '../../src/kube/api/errors.ts';
import type { CertificateSigningRequest } from '../../src/kube/api/objects.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { certificatesIn, checkTls, loadTlsMaterial } from '../../src/serving/tls-files.ts';
import type { Log } from '../../src/telemetry/log.ts';
import { reveal, secret } from '../../src/telemetry/secret.ts';
import { createRequest } from './signing-request.ts';
import { messageOf } from '../../src/names/printable.ts';

export interface AgentCertificateOptions {
  readonly client: KubeClient;
  readonly node: string;
  /** Directory for `tls.crt`, `tls.key` and `ca.crt`, in memory. */
  readonly dir: string;
  /** Directory with `ca.crt`, and `tls.crt` from the CA that signs now. Empty before the first mount. */
  readonly authorityDir: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** The limit of other TLS files: a bundle of all public authorities has 230 KiB. */
const maxFileBytes = 512 * 1024;
const failureBackOff: BackOff = { firstMs: 1000, mostMs: 5 * 60_000 };
/** A controller answers within a second. Without a leader, thousands of agents wait. */
const pollBackOff: BackOff = { firstMs: 250, mostMs: 20_000 };
/** After these, some twelve minutes, the log names what to check. The API server keeps open requests for a day. */
const patiencePolls = 50;
/** The certificate is compared with the clock this often: the wall clock may have jumped. */
const lookMs = 10 * 60_000;
/** The CA may have changed; spreads 5,000 agents over ten minutes of seven days. */
const movePart = 1 / 1000;
/** The same part of a life as for all certificates of archwright. */
const dueAfter = 2 / 3;
/** Agents that started together must not renew together. */
const spread = 1 / 10;

/** Both PEM, from the mounted Secret of the agents. */
interface Authority {
  /** Every CA that is trusted now. */
  readonly ca: string;
  /** A certificate from the CA that signs now. */
  readonly sample: string;
}

interface Renewal {
  /** Milliseconds since 1970. At or before now: it cannot be used any more, or is due. */
  readonly at: number;
  /** Whether another CA signs now. The old one is trusted for up to an hour; each agent moves by then. */
  readonly moves: boolean;
  /** Life of the certificate, milliseconds. */
  readonly lifeMs: number;
}

/** Keeps the certificate until it is closed. */
export class AgentCertificate {
  readonly #options: AgentCertificateOptions;
  readonly #ending = new AbortController();
  readonly #first = Promise.withResolvers<void>();
  readonly #random: number;
  readonly #running: Promise<void>;
  #changed = new AbortController();
  /** Number in the name of the next request. */
  #slot: number;

  constructor(options: AgentCertificateOptions) {
    this.#options = options;
    this.#random = options.clock.random();
    this.#slot = Math.floor(this.#random * maxAgentRequests);
    this.#running = this.#run();
  }

  /** Resolves when the directory has files that can be used; rejects with the signal's reason. */
  ready(signal: AbortSignal): Promise<void> {
    return unlessAborted(this.#first.promise, signal);
  }

  async close(): Promise<void> {
    this.#ending.abort(new Error('closed'));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { authorityDir, clock, log } = this.#options;
    const { signal } = this.#ending;
    const authority = await liveContent({
      dirs: [authorityDir],
      read: () => readAuthority(authorityDir),
      fingerprint: (value) => JSON.stringify(value),
      onChange: () => this.#changed.abort(),
      log,
    });
    let failures = 0;
    while (!signal.aborted) {
      this.#changed = new AbortController();
      let pauseMs: number;
      try {
        pauseMs = await this.#keep(authority);
        failures = 0;
      } catch (error) {
        if (signal.aborted) break;
        failures += 1;
        pauseMs = backOffMs(failureBackOff, failures, clock.random);
        const problem = messageOf(error);
        log.error({ problem, pauseMs }, 'the agent gets no certificate; it tries again');
      }
      const waking = AbortSignal.any([signal, this.#changed.signal]);
      await clock.sleep(pauseMs, waking).catch(() => undefined);
    }
    await authority.close();
  }

  /** Compares the directory with the authority and the clock. @returns the next check, ms from now */
  async #keep(live: LiveContent<Authority>): Promise<number> {
    const { dir, node, clock, log } = this.#options;
    const files = await loadTlsMaterial(dir, true).catch(() => undefined);
    const authority = live.current() ?? authorityOf(files?.cert, files?.ca);
    const renewal = files && authority && renewalOf(files.cert, authority, node, this.#random);
    if (files !== undefined && authority !== undefined && renewal !== undefined) {
      if (files.ca !== authority.ca) await this.#write(files.cert, reveal(files.key), authority);
      this.#first.resolve();
      const leftMs = renewal.at - clock.now();
      if (renewal.moves) await clock.sleep(renewal.lifeMs * movePart * this.#random, this.#ending.signal);
      else if (leftMs > 0) return Math.min(leftMs, lookMs);
    }
    const { certificate, issuers, key } = await this.#request();
    const trusted = live.current() ?? authority ?? authorityOf(certificate, issuers);
    if (trusted === undefined) throw live.problem() ?? new Error('the CA of the agents is not known');
    await this.#write(certificate, key, trusted);
    log.info({ node }, 'the agent got a certificate');
    if (renewalOf(certificate, trusted, node, this.#random) === undefined)
      throw new Error('the certificate is not for this node, or from a CA that is not known yet');
    return 0;
  }

  /** A server that reads half of the change keeps the files from before. @throws ServingError for wrong content */
  async #write(certificate: string, key: string, { ca }: Authority): Promise<void> {
    const { dir } = this.#options;
    checkTls({ cert: certificate, key: secret(key), ca }, (name) => `${name} of the new certificate`);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    for (const [name, content] of Object.entries({ 'tls.crt': certificate, 'tls.key': key, 'ca.crt': ca })) {
      await writeFile(join(dir, `${name}.new`), content, { mode: 0o600 });
      await rename(join(dir, `${name}.new`), join(dir, name));
    }
  }

  /** @returns all PEM; `issuers` are the CAs that are trusted @throws Error with the refusal; KubeError */
  async #request() {
    const { client, node, clock, log } = this.#options;
    const { signal } = this.#ending;
    const { key, request } = createRequest(node);
    const name = await this.#create(request);
    log.info({ request: name }, 'the agent requested a certificate');
    const path = paths.certificateSigningRequests(name);
    for (let polls = 1; ; polls += 1) {
      await clock.sleep(backOffMs(pollBackOff, polls, clock.random), signal);
      const found = await client.get<CertificateSigningRequest>(path, { signal });
      const { certificate, conditions = [] } = found.status ?? {};
      const refusal = conditions.find(({ type }) => type === 'Denied' || type === 'Failed');
      if (refusal !== undefined) throw new Error(`${name} was refused: ${refusal.message ?? refusal.type}`);
      if (certificate) {
        const [own, ...issuers] = certificatesIn(Buffer.from(certificate, 'base64').toString('utf8'));
        if (own === undefined) throw new Error(`${name} has no certificate`);
        return { certificate: own.toString(), issuers: issuers.join(''), key: reveal(key) };
      }
      if (polls === patiencePolls)
        log.error(
          { request: name },
          'the request is not signed yet: is there a leader among the controllers?',
        );
    }
  }

  /** Creates it under a name that the node does not use yet. */
  async #create(request: string): Promise<string> {
    const { client, node } = this.#options;
    const spec = {
      signerName: agentSigner,
      request: Buffer.from(request).toString('base64'),
      usages: agentUsages,
    };
    const kind = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' };
    const path = paths.certificateSigningRequests();
    for (let tries = 0; tries < maxAgentRequests; tries += 1) {
      const name = agentRequestName(node, this.#slot);
      this.#slot = (this.#slot + 1) % maxAgentRequests;
      const body = { ...kind, metadata: { name }, spec };
      const { signal } = this.#ending;
      const creating = client.create<CertificateSigningRequest>(path, body, { signal });
      if ((await ignoring('conflict', creating)) !== undefined) return name;
    }
    throw new Error(
      `this node has ${maxAgentRequests} requests; the API server removes them an hour after they were answered`,
    );
  }
}

/** The authority before the agents' Secret is mounted: a certificate, and the CAs trusted when it was issued. */
function authorityOf(certificate: string | undefined, ca: string | undefined): Authority | undefined {
  return certificate === undefined || !ca ? undefined : { ca, sample: certificate };
}

async function readAuthority(dir: string): Promise<Authority> {
  const read = (name: string) => readText(join(dir, name), { maxBytes: maxFileBytes });
  return { ca: await read('ca.crt'), sample: await read('tls.crt') };
}

/**
 * When a certificate has to be renewed.
 * @param random 0 to 1, fixed per process
 * @returns `undefined` if it is for another node, or from no CA that is trusted
 */
export function renewalOf(
  certificatePem: string,
  authority: Authority,
  node: string,
  random: number,
): Renewal | undefined {
  const certificate = new X509Certificate(certificatePem);
  if (certificate.checkHost(agentNameOn(node), { subject: 'never', wildcards: false }) === undefined)
    return undefined;
  const authorities = certificatesIn(authority.ca);
  const issuer = issuerOf(certificate, authorities);
  if (issuer === undefined) return undefined;
  const signing = issuerOf(new X509Certificate(authority.sample), authorities);
  const from = certificate.validFromDate.getTime();
  const lifeMs = certificate.validToDate.getTime() - from;
  return {
    at: from + lifeMs * (dueAfter + random * spread),
    moves: signing !== undefined && signing.fingerprint256 !== issuer.fingerprint256,
    lifeMs,
  };
}

function issuerOf(certificate: X509Certificate, authorities: readonly X509Certificate[]) {
  return authorities.find((each) => certificate.checkIssued(each) && certificate.verify(each.publicKey));
}
