import t from 'tap';
import { isLoginHeader } from '../../src/http/login-headers.ts';

t.test('headers that log in, however they are written', (t) => {
  for (const name of ['authorization', 'Authorization', 'Proxy-Authorization', 'COOKIE', ' cookie ']) {
    t.ok(isLoginHeader(name), name);
  }
  for (const name of ['', 'x-authorization', 'authorization2', 'cookies', 'x-api-key']) {
    t.notOk(isLoginHeader(name), name);
  }
  t.end();
});
