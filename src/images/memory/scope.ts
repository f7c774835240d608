/**
 * Whose an answer is: everybody's, of who presents the same pull credentials, or of the pods of one service account. And which
 * question to ask, so that its answer belongs to whom it shall belong.
 */
import type { ServiceAccountName } from '../../credentials/service-account.ts';
import type { ImageFacts, ImageRequest } from '../facts/facts.ts';
import { scopeOf, sharedScope, withAccount, within, type Scope } from './key.ts';

/** Whether an answer, a failure too, counts for pods of the question's service account only. */
export function isPerAccount({ credentialSource }: ImageFacts): boolean {
  return credentialSource === 'service-account';
}

export function isSameAccount(a: ServiceAccountName | undefined, b: ServiceAccountName | undefined): boolean {
  return a?.namespace === b?.namespace && a?.name === b?.name;
}

/** Whom a failure concerns: who presents the same pull credentials, and perhaps only pods of the same service account. */
export function scopeOfFailure(
  { pullCredentials, serviceAccount }: ImageRequest,
  perAccount: boolean,
): Scope {
  const scope = scopeOf(pullCredentials);
  return perAccount && serviceAccount ? withAccount(scope, serviceAccount) : scope;
}

/** Whom facts may be told; `undefined` where that is not known. */
export function scopeToKeep(
  { credentialSource }: ImageFacts,
  question: ImageRequest | undefined,
): Scope | undefined {
  if (credentialSource === 'service-account') {
    return question?.serviceAccount && withAccount(sharedScope, question.serviceAccount);
  }
  if (credentialSource !== 'pull-secret') return sharedScope;
  const scope = question ? scopeOf(question.pullCredentials) : sharedScope;
  return scope === sharedScope ? undefined : scope;
}

/** The question with nothing but what the facts of this scope were learned with. */
export function asFor(scope: Scope, question: ImageRequest): ImageRequest {
  const { serviceAccount } = question;
  const isOfAccount = serviceAccount !== undefined && scope === withAccount(sharedScope, serviceAccount);
  return {
    ...ofNobody(question),
    pullCredentials: within(question.pullCredentials, scope),
    ...(isOfAccount && { serviceAccount }),
  };
}

/** A question as somebody asks it who brings nothing of their own; its answer can be shared. */
export function ofNobody(question: ImageRequest): ImageRequest {
  const { image, reference, pullPolicy } = question;
  return { image, reference, pullPolicy, pullCredentials: [] };
}
