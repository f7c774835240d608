/**
 * Signs the agents' certificates if certificates are built in. Each agent makes its own key and requests a
 * certificate for its node by a CertificateSigningRequest. The leader approves it if the agent's token is
 * bound to that node (`request.ts`). The requests hold all state. The API server removes them after an hour
 * (pkg/controller/certificates/cleaner).
 */
import { ownNames } from '../../../names/keys.ts';
import { BoundedMap } from '../../../async/bounded-map.ts';
import { createRateLimiter, RateLimiters } from '../../../async/rate-limiter.ts';
import { ignoring } from '../../../kube/api/errors.ts';
import { paths } from '../../../kube/api/paths.ts';
import { startReflector, type Reflector } from '../../../kube/watch/reflector.ts';
import { counter, counts } from '../../../telemetry/metrics.ts';
import {
  agentNameOn,
  agentServerName,
  agentSigner,
  maxAgentRequests,
} from '../../../certificates/agent-names.ts';
import { readAuthorities, signerOf, trusted } from '../../../certificates/authorities.ts';
import { agreedTimeOf, timesOf, validity } from '../../../certificates/clock-agreement.ts';
import { issueFor } from '../../../certificates/issue.ts';
import { writeCertificates } from '../../../certificates/pem.ts';
import { readSecret } from '../../write/own-data.ts';
import type { Feature, LeaderContext, ReconcileResult } from '../../lead/feature.ts';
import { judgeRequest, readRequest, trimRequest, type OpenRequest, type RequestContent } from './request.ts';

const results = ['issued', 'refused'] as const;

const agentCertificatesTotal = counter(
  'archwright_agent_certificate_requests_total',
  'Certificate requests of agents. A refused one is a defect or an attack.',
  { result: results },
);

/** Renewed after two thirds. A stolen key works this long, and only as the agent of its own node. */
const mostLifeMs = 7 * 24 * 60 * 60_000;
/** The pause while it waits for the caches, or for the authority of a new cluster. */
const againMs = 1000;
/** More than the agents of a large cluster that start together. */
const maxSeen = 1000;
/** Answers for one node: its agent makes one request for each of its pods, and one in five days. */
const answers = { perSecond: maxAgentRequests / 3600, burst: maxAgentRequests };
/** All names of three nodes at once; other writes of the leader go on. */
const removals = { perSecond: 5, burst: 100 };
/** The nodes are those of tokens, so an agent cannot choose one. */
const maxNodes = 10_000;

export const agentCertificates: Feature = {
  name: 'agent-certificates',
  metrics: [agentCertificatesTotal],
  // Without agents, the chart grants no right to their requests.
  isOn: ({ configuration }) =>
    configuration().agents.length > 0 && configuration().certificates !== 'external',
  // The API server would remove them an hour after they were answered.
  leftovers: {
    others: {
      step: 'agent certificates',
      kind: 'CertificateSigningRequest',
      path: paths.certificateSigningRequests,
      fieldSelector: `spec.signerName=${agentSigner}`,
    },
  },
  start: (leader, enqueue) => {
    const { client, namespace, clock, log, agentServiceAccount } = leader;
    const account = `system:serviceaccount:${namespace}:${agentServiceAccount}`;
    const requests = startReflector<OpenRequest>({
      client,
      path: paths.certificateSigningRequests(),
      // Requests for every signer: before the chart's policy, one for another may have taken a name.
      trim: (object) => trimRequest(object, account),
      log,
      clock,
    });
    requests.onEach(({ name, object }) => {
      if (object) enqueue(name);
    });
    const reconcile = createReconcile(leader, requests);
    return { keys: () => [], reconcile, close: () => requests.stop() };
  },
};

/** @returns answers the request of this name; throws KubeError */
function createReconcile(leader: LeaderContext, requests: Pick<Reflector<OpenRequest>, 'get'>) {
  const { namespace, caches, configuration, metrics, serverNow, clock, client, signal, log } = leader;
  /** Keys: UIDs, because names are used again. A request changes when it is approved, before it has its certificate. */
  const seen = new BoundedMap<string, 'admitted' | 'signed'>(maxSeen);
  /** Keys: nodes. */
  const limiters = new RateLimiters({ ...answers, clock }, maxNodes);
  const removalLimiter = createRateLimiter({ ...removals, clock });
  const count = counts(metrics, agentCertificatesTotal, 'result', results);

  async function reconcile(name: string): Promise<ReconcileResult> {
    const request = requests.get('', name);
    if (request === undefined || seen.peek(request.uid) === 'signed') return undefined;
    if (request.isForeign) return remove(name);
    const waitMs = delayMs(request);
    if (waitMs > 0) return { requeueAfterMs: Math.ceil(waitMs) };
    const requested = await readRequest(request.text);
    const podOf = (pod: string) => caches.runningPods.get(namespace, pod);
    const verdict = judgeRequest(request, requested, podOf, serverNow());
    if (verdict.kind === 'wait') return { requeueAfterMs: againMs };
    if (verdict.kind === 'refuse') {
      const { why } = verdict;
      await answer(name, 'Denied', 'Refused', why);
      count('refused');
      log.warn(
        { request: name, nodes: request.nodes, why },
        "an agent's request for a certificate was refused",
      );
      return undefined;
    }
    return requested && (await sign(request, requested, verdict.node));
  }

  /** Any kubelet can create requests: without the chart's policy, it could take the names of another node's agent. */
  async function remove(name: string): Promise<ReconcileResult> {
    const waitMs = removalLimiter.takeOrDelayMs();
    if (waitMs > 0) return { requeueAfterMs: Math.ceil(waitMs) };
    await ignoring('not-found', client.delete(paths.certificateSigningRequests(name), { signal }));
    count('refused');
    log.warn(
      { request: name },
      'a request for a certificate was removed: it had the signer or a name of agents and was not theirs',
    );
    return undefined;
  }

  /** @returns milliseconds until the node gets another answer; 0: this request gets its answer now */
  function delayMs({ uid, nodes: [node = ''] }: OpenRequest): number {
    if (seen.peek(uid)) return 0;
    const waitMs = limiters.get(node).takeOrDelayMs();
    if (waitMs === 0) seen.set(uid, 'admitted');
    return waitMs;
  }

  async function sign(
    request: OpenRequest,
    { publicKey }: RequestContent,
    node: string,
  ): Promise<ReconcileResult> {
    const { name, uid } = request;
    const secret = await readSecret(leader, ownNames(configuration()).caSecret);
    const authorities = readAuthorities(secret?.texts ?? {});
    if (authorities.newest === undefined) return { requeueAfterMs: againMs };
    const times = timesOf(configuration().certificateTime);
    const time = agreedTimeOf(serverNow(), clock.now(), times);
    const signer = signerOf(authorities, time);
    const life = validity(time, Math.min(mostLifeMs, times.certificateMs), signer.certificate);
    // The second name is for clients that find agents by URL or DNS, and for scrapes of metrics.
    const names = [agentNameOn(node), agentServerName];
    const subject = { commonName: agentServerName, names, usage: 'server' } as const;
    const pem = await issueFor(publicKey, signer, subject, life);
    if (!request.isApproved) await answer(name, 'Approved', 'OwnNode', `the token belongs to node ${node}`);
    // With the CAs: the first agents of a cluster start before the Secret that has them.
    const chain = `${pem.trim()}\n${writeCertificates(trusted(authorities))}`;
    const body = { status: { certificate: Buffer.from(chain).toString('base64') } };
    const path = `${paths.certificateSigningRequests(name)}/status`;
    await ignoring('not-found', client.patch(path, { type: 'merge', body }, { signal }));
    seen.set(uid, 'signed');
    count('issued');
    log.info({ node, expires: new Date(life.to).toISOString() }, 'an agent got its certificate');
    return undefined;
  }

  async function answer(name: string, type: string, reason: string, message: string): Promise<void> {
    const conditions = [{ type, status: 'True', reason, message }];
    const path = `${paths.certificateSigningRequests(name)}/approval`;
    const patch = { type: 'merge', body: { status: { conditions } } } as const;
    await ignoring('not-found', client.patch(path, patch, { signal }));
  }

  return reconcile;
}
