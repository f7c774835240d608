/** A leader that signs certificates of agents, and agents with tokens of pods on nodes. */
import type { Test } from 'tap';
import { agentCertificates } from '../../../../src/controller/features/agent-certificates/agent-certificates.ts';
import { writeAuthorities } from '../../../../src/certificates/authorities.ts';
import { issueAuthority } from '../../../../src/certificates/issue.ts';
import { createRequest } from '../../../../daemon/certificate/signing-request.ts';
import { agentSigner, agentUsages } from '../../../../src/certificates/agent-names.ts';
import type { Configuration } from '../../../../src/policy/configuration/configuration.ts';
import { lead, startLeader } from '../../leader.ts';

export const requestsPath = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
export const agentAccount = 'system:serviceaccount:archwright:archwright-agent';

const hour = 3_600_000;

export interface Token {
  readonly username?: string;
  readonly node?: string | undefined;
  readonly pod?: string;
  readonly uid?: string;
}

interface Answered {
  readonly certificate?: string;
  readonly conditions?: readonly { readonly type: string; readonly message: string }[];
}

/** `extra` as the API server fills it in for a token (KEP 4193). */
export function userOf({
  username = agentAccount,
  node,
  pod = `agent-on-${node}`,
  uid = `uid-${pod}`,
}: Token) {
  const key = (name: string): string => `authentication.kubernetes.io/${name}`;
  const ofNode = node === undefined ? {} : { [key('node-name')]: [node] };
  return { username, extra: { [key('pod-name')]: [pod], [key('pod-uid')]: [uid], ...ofNode } };
}

export async function startWorld(t: Test, configuration: Partial<Configuration> = {}) {
  const agents = ['archwright/archwright-agent'];
  const test = await startLeader(t, { configuration: { agents, ...configuration } });
  const { store, leader } = test;
  const now = Date.now();
  const authority = await issueAuthority({ from: now - hour, to: now + 365 * 24 * hour });
  const putAuthority = (): void => {
    const texts = writeAuthorities({
      newest: authority,
      previous: [],
      previousSigner: undefined,
      phase: 'signing',
    });
    const data: Record<string, string> = {};
    for (const [key, text] of Object.entries(texts)) data[key] = Buffer.from(text ?? '').toString('base64');
    store.put('/api/v1/namespaces/archwright/secrets/archwright-ca', { data });
  };
  putAuthority();
  const putAgent = (node: string): void => {
    const name = `agent-on-${node}`;
    store.put(`/api/v1/namespaces/archwright/pods/${name}`, {
      metadata: { name, namespace: 'archwright', uid: `uid-${name}` },
      spec: { nodeName: node, containers: [] },
      status: { phase: 'Running' },
    });
  };
  putAgent('n1');
  putAgent('n2');
  await test.settled();
  const running = lead(agentCertificates, leader);
  t.teardown(() => running);
  t.teardown(() => test.depose());

  let count = 0;
  /** A request as the API server stores it. @returns its name */
  const put = (token: Token, request: string, more: object = {}, name = `csr-${++count}`): string => {
    store.put(`${requestsPath}/${name}`, {
      metadata: { name },
      spec: {
        signerName: agentSigner,
        request: Buffer.from(request).toString('base64'),
        usages: agentUsages,
        ...userOf(token),
        ...more,
      },
    });
    return name;
  };
  const statusOf = (name: string): Answered => store.get(`${requestsPath}/${name}`)?.status ?? {};
  return {
    ...test,
    authority,
    running,
    putAuthority,
    putAgent,
    put,
    statusOf,
    requestFor: (node: string): string => createRequest(node).request,
    /** The answer to a request: its certificate, or why it was denied. */
    answer: async (name: string) => {
      const denied = () => statusOf(name).conditions?.find(({ type }) => type === 'Denied')?.message;
      await store.until(
        () => statusOf(name).certificate !== undefined || denied() !== undefined,
        'an answer',
      );
      const { certificate } = statusOf(name);
      return {
        certificate: certificate && Buffer.from(certificate, 'base64').toString(),
        denied: denied(),
      };
    },
  };
}
