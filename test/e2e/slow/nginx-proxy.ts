import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ChildProgram, createTempFolder, freePort } from '../../support/child-program.ts'
import type { TestLifecycle } from './deployed-relay.ts'

const NGINX = '/usr/sbin/nginx'

/** The addresses of a proxy, and its errors. */
export type NginxProxy = { readonly url: string; readonly wsUrl: string; readonly waitForError: (of: RegExp) => Promise<unknown> }

/** Nginx of Debian before a relay: `proxy_pass`, the usual three lines for WebSockets, and settings of the test. */
export async function openNginx(test: TestLifecycle, upstream: string, more = ''): Promise<NginxProxy> {
  if (!existsSync(NGINX)) throw new Error(`There is no ${NGINX}: apt-get install nginx-light, and run it again.`)
  const folder = await createTempFolder(test)
  const port = await freePort()
  await mkdir(join(folder, 'temp'))
  await writeFile(join(folder, 'nginx.conf'), configuration({ port, folder, upstream, more }))
  const nginx = new ChildProgram([NGINX, '-p', folder, '-c', 'nginx.conf', '-e', 'stderr'], { env: { ...process.env } })
  test.onTestFinished(() => nginx.kill())
  await nginx.waitForOutput('stderr', /using the "\w+" event method/)
  return {
    url: `http://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${port}`,
    waitForError: (of) => nginx.waitForOutput('stderr', of),
  }
}

type NginxSettings = { readonly port: number; readonly folder: string; readonly upstream: string; readonly more: string }

/** Defaults, except what keeps nginx in its folder and in the foreground. */
const configuration = ({ port, folder, upstream, more }: NginxSettings): string => `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr notice;
events {}
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((of) => `${of}_temp_path ${folder}/temp/${of};`).join(' ')}
  server {
    listen 127.0.0.1:${port};
    ${more}
    location / {
      proxy_pass ${upstream};
    }
    location ~ ^/(v1/ws|rpc)$ {
      proxy_pass ${upstream};
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection "upgrade";
    }
  }
}
`
