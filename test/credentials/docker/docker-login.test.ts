import t from 'tap';
import { dockerLoginCandidates } from '../../../src/credentials/docker/docker-login.ts';

t.test('the directory that docker itself would use', async (t) => {
  t.same(dockerLoginCandidates({}, '/home/me'), ['/home/me/.docker/config.json']);
  t.same(dockerLoginCandidates({ DOCKER_CONFIG: '' }, '/home/me'), ['/home/me/.docker/config.json']);
  t.same(dockerLoginCandidates({ DOCKER_CONFIG: '/etc/login' }, '/home/me'), ['/etc/login/config.json']);
});
