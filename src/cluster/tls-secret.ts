/**
 * TLS from a Secret of archwright, by the API. A mounted Secret must exist before the pod starts and comes up to
 * two minutes late; the first leader writes these Secrets itself.
 */
import { secretText, type Secret } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { watchNamed, type NamedObject } from '../kube/watch/reflector.ts';
import { checkTls, holdTls, type TlsReports, type TlsSource, type TlsTexts } from '../serving/tls-files.ts';
import { secret } from '../telemetry/secret.ts';

/** Follows the Secret from now on. If its content cannot be used, the last good one stays. */
export function watchTlsSecret(options: NamedObject & TlsReports): TlsSource {
  const { client, namespace, name, use, clock, log } = options;
  const held = holdTls(`Secret ${namespace}/${name}`, options);
  const onChange = (): void => {
    const texts = watch.get(namespace, name);
    if (texts === undefined) return;
    if (typeof texts === 'string') return held.refuse(texts);
    try {
      held.take(checkTls(texts, (key) => `${key} of the Secret ${name}`));
    } catch (error) {
      held.refuse(error);
    }
  };
  const watch = watchNamed<TlsTexts | string>({
    client,
    name,
    clock,
    log,
    path: paths.secrets(namespace),
    trim: (object) => textsIn(object, use === 'client'),
    onChange,
  });
  return { ...held, close: () => Promise.resolve(watch.stop()) };
}

/** @returns a text: what is wrong */
function textsIn(object: Secret, needsCa: boolean): TlsTexts | string {
  const [cert, key, ca] = ['tls.crt', 'tls.key', 'ca.crt'].map((name) => secretText(object, name));
  if (!cert || !key || (needsCa && !ca))
    return `it needs tls.crt and tls.key${needsCa ? ', and ca.crt' : ''}`;
  return { cert, key: secret(key), ca: ca || undefined };
}
