/**
 * TLS from a Secret of archwright, by the API. A mounted Secret must exist before the pod starts and comes up to
 * two minutes late; the first leader writes these Secrets itself.
 */
import { unlessAborted } from '../async/wait.ts';
import type { Secret } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { watchNamed, type NamedObject } from '../kube/watch/reflector.ts';
import { checkTls, holdTls, type TlsReports, type TlsSource, type TlsTexts } from '../serving/tls-files.ts';
import { secret } from '../telemetry/secret.ts';

/** Follows the Secret from now on. If its content cannot be used, the last good one stays. */
export function watchTlsSecret(options: NamedObject & TlsReports): TlsSource {
  const { client, namespace, name, use, clock, log } = options;
  const held = holdTls(`Secret ${namespace}/${name}`, options);
  const first = Promise.withResolvers<void>();
  const onChange = (): void => {
    const texts = watch.get(namespace, name);
    if (texts === undefined) return;
    try {
      held.take(checkTls(texts, (key) => `${key} of the Secret ${name}`));
      first.resolve();
    } catch (error) {
      held.refuse(error);
    }
  };
  const watch = watchNamed<TlsTexts>({
    client,
    name,
    clock,
    log,
    path: paths.secrets(namespace),
    trim: (object) => textsIn(object, use === 'client'),
    onChange,
  });
  return {
    current: held.current,
    onChange: held.onChange,
    ready: (signal) => unlessAborted(first.promise, signal),
    close: () => Promise.resolve(watch.stop()),
  };
}

/** @returns `undefined`: a key is missing, and another write will add it */
function textsIn({ data = {} }: Secret, needsCa: boolean): TlsTexts | undefined {
  const [cert, key, ca] = ['tls.crt', 'tls.key', 'ca.crt'].map((name) => text(data[name]));
  if (!cert || !key || (needsCa && !ca)) return undefined;
  return { cert, key: secret(key), ca: ca || undefined };
}

function text(base64 = ''): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}
