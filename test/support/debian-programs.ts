import { globSync } from 'node:fs'

/** The programs and libraries of Debian that tests use: where each is, and the packages that it needs. */
const programs = {
  buildah: ['/usr/bin/buildah', 'buildah'],
  cc: ['/usr/bin/cc', 'gcc libc6-dev'],
  chromium: ['/usr/bin/chromium', 'chromium'],
  curl: ['/usr/bin/curl', 'curl'],
  faketime: ['/usr/lib/*/faketime/libfaketimeMT.so.1', 'libfaketime'],
  go: ['/usr/bin/go', 'golang-go'],
  haproxy: ['/usr/sbin/haproxy', 'haproxy'],
  jq: ['/usr/bin/jq', 'jq'],
  mmdebstrap: ['/usr/bin/mmdebstrap', 'mmdebstrap'],
  nats: ['/usr/sbin/nats-server', 'nats-server'],
  nginx: ['/usr/sbin/nginx', 'nginx-light'],
  openssl: ['/usr/bin/openssl', 'openssl'],
  prometheus: ['/usr/bin/prometheus', 'prometheus'],
  promtool: ['/usr/bin/promtool', 'prometheus'],
  python: ['/usr/bin/python3', 'python3'],
  quantlib: ['/usr/lib/python3/dist-packages/QuantLib', 'python3 quantlib-python'],
  slowhttptest: ['/usr/bin/slowhttptest', 'slowhttptest'],
  systemd: ['/usr/bin/systemd-analyze', 'systemd'],
  tzdata: ['/usr/share/zoneinfo/America/New_York', 'tzdata'],
  websockets: ['/usr/lib/python3/dist-packages/websockets', 'python3 python3-websockets'],
} as const satisfies Readonly<Record<string, readonly [path: string, packages: string]>>

export type DebianProgram = keyof typeof programs

/** Returns where a program is, or where it would be. */
export const pathOf = (name: DebianProgram): string => globSync(programs[name][0])[0] ?? programs[name][0]

const isMissing = (name: DebianProgram): boolean => globSync(programs[name][0]).length === 0
const packagesOf = (names: readonly DebianProgram[]): string =>
  [...new Set(names.flatMap((name) => programs[name][1].split(' ')))].join(' ')

/** Throws if one of them is missing. The tests of a file that calls this cannot run without them. */
export function needPrograms(...names: readonly DebianProgram[]): void {
  const missing = names.filter(isMissing)
  if (missing.length > 0) throw new Error(`${missing.join(', ')} missing: apt-get install ${packagesOf(missing)}`)
}

/** Whether all of them are here. They must be where `CI` is set; elsewhere tests that need them are skipped. */
export function hasPrograms(...names: readonly DebianProgram[]): boolean {
  if (process.env.CI) needPrograms(...names)
  const missing = names.filter(isMissing)
  if (missing.length > 0)
    process.stderr.write(`SKIPPED: tests that need ${missing.join(', ')} (apt-get install ${packagesOf(missing)})\n`)
  return missing.length === 0
}

/** Returns the packages of missing programs that these texts of source need. */
export function missingPackages(sources: readonly string[]): string {
  const calls = sources.flatMap((source) => [...source.matchAll(/\b(?:has|need)Programs\(([^)]*)\)/g)])
  const names = calls.flatMap(([, list = '']) => [...list.matchAll(/'(\w+)'/g)].map(([, name]) => name as DebianProgram))
  return packagesOf([...new Set(names)].filter((name) => name in programs && isMissing(name)))
}
