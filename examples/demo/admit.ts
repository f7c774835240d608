/** The API server's side of an admission: sends a review and validates the response as an API server does. */
import { Agent, request as httpsRequest } from 'node:https';
import jsonPatch from 'fast-json-patch';
import type { AdmissionRequest, AdmissionResponse, KubeObject } from '../../src/kube/api/objects.ts';
import type { Operation } from '../../src/placement/decision.ts';
import { DemoError } from './error.ts';
import { reviewOf } from './examples.ts';

export interface Answer {
  readonly response: AdmissionResponse;
  /** The patch; empty: none. */
  readonly operations: readonly Operation[];
  /** The object with the patch applied. */
  readonly patched: KubeObject;
}

export interface ApiServer {
  /** @throws DemoError if an API server would refuse the response */
  admit(request: AdmissionRequest): Promise<Answer>;
  close(): void;
}

/** `timeoutSeconds` of the webhook configuration, at its maximum; the API server sends it with requests. */
const timeoutSeconds = 30;

/** Path and query of the webhook, as the API server uses them. */
export const mutatePath = `/mutate?timeout=${timeoutSeconds}s`;

/** @param ca authority of the webhook's certificate, PEM */
export function createApiServer(webhook: { readonly url: string; readonly ca: string }): ApiServer {
  const agent = new Agent({ keepAlive: true, ca: webhook.ca });

  async function post(body: string): Promise<string> {
    return await new Promise((resolve, reject) => {
      const sent = httpsRequest(
        `${webhook.url}${mutatePath}`,
        {
          agent,
          method: 'POST',
          timeout: timeoutSeconds * 1000,
          headers: { 'content-type': 'application/json', accept: 'application/json' },
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (chunk: string) => {
            text += chunk;
          });
          response.on('error', reject).on('end', () => {
            if (response.statusCode === 200) resolve(text);
            else reject(new DemoError(`the webhook answered ${response.statusCode}: ${text.trim()}`));
          });
        },
      );
      sent.on('timeout', () => {
        sent.destroy(new DemoError(`the webhook did not answer within ${timeoutSeconds} s`));
      });
      sent.on('error', reject).end(body);
    });
  }

  return {
    admit: async (request) => answerOf(request, await post(reviewOf(request))),
    close: () => agent.destroy(),
  };
}

/** An API server's checks (kubernetes staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/request). */
function answerOf(request: AdmissionRequest, text: string): Answer {
  const review = JSON.parse(text) as { apiVersion?: string; kind?: string; response?: AdmissionResponse };
  const { response } = review;
  if (review.apiVersion !== 'admission.k8s.io/v1' || review.kind !== 'AdmissionReview' || !response) {
    throw new DemoError('the webhook did not answer with an AdmissionReview');
  }
  if (response.uid !== request.uid) throw new DemoError('the answer is to another request: its uid differs');
  if (response.patch !== undefined && response.patchType !== 'JSONPatch') {
    throw new DemoError('the answer has a patch without patchType JSONPatch');
  }
  const operations =
    response.patch === undefined
      ? []
      : (JSON.parse(Buffer.from(response.patch, 'base64').toString()) as Operation[]);
  return { response, operations, patched: applied(request.object as KubeObject, operations) };
}

function applied(object: KubeObject, operations: readonly Operation[]): KubeObject {
  try {
    const validate = true;
    return jsonPatch.applyPatch(structuredClone(object), structuredClone([...operations]), validate)
      .newDocument;
  } catch (error) {
    throw new DemoError(
      `the patch does not apply: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
