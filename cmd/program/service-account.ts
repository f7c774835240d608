/** Flags that name a service account, or another object with the same rules for names. */
import { isObjectName, type ServiceAccountName } from '../../src/credentials/credential.ts';
import { UsageError, type Invocation } from './subcommand.ts';

/** @throws UsageError if no cluster can have such a service account */
export function serviceAccountIn(flags: Invocation['flags'], flag: string): ServiceAccountName | undefined {
  const text = flags.get(flag)?.at(-1);
  if (text === undefined) return undefined;
  const [namespace = '', name = '', ...more] = text.split('/');
  const account = { namespace, name };
  if (more.length === 0 && isObjectName(account)) return account;
  throw new UsageError(`--${flag} must be NAMESPACE/NAME, not ${text}`);
}
