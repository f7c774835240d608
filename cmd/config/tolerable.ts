/** tolerable: its file `tolerable.toml`. */
import { convertEach, dropped, same, type Conversion, type Origin } from './converted.ts';

const certificates = 'certificates come from Secrets that the controller or cert-manager writes';

const rules: Readonly<Record<string, Conversion>> = {
  supported_architectures: same('schedulableArchitectures'),
  tolerations: (value, into) => into.set('tolerations', Array.isArray(value) ? value : [value]),
  registry_credential_path: (value, into) => {
    into.note(
      `is where each <registry>.toml lies (${String(value)}): put each into a Secret and name it in registryCredentials`,
    );
  },
  ssl_key_path: dropped(certificates),
  ssl_cert_path: dropped(certificates),
};

export const tolerable: Origin = {
  name: 'tolerable',
  recognizes: (document) =>
    ['supported_architectures', 'registry_credential_path', 'ssl_key_path'].some((key) =>
      Object.hasOwn(document, key),
    ),
  convert: (document) => ({ ...convertEach(document, rules), resources: [] }),
};
