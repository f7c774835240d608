/**
 * Looks a repository up and prints it. A separate program, because the test runner adds variables to children
 * of a test.
 */
import { createCredentialProviderSource } from '../../../daemon/kubelet/source.ts';

const [config = '', binDir = '', repository = ''] = process.argv.slice(2);
const environment = { A: 'from setting', B: 'from setting' };
const source = await createCredentialProviderSource({ hostRoot: '/', config, binDir, environment });
const [matched] = await source.lookup(repository);
process.stdout.write(matched?.credential.username ?? JSON.stringify(source.problems()));
await source.close();
