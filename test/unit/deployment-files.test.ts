import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { durationMs } from '../../src/lib/units.ts'
import { settingNames, settings } from '../../src/relay/config/settings.ts'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const dockerfile = read('Dockerfile')

describe('the Dockerfile', () => {
  it.each([
    [
      'two stages of one base, whose digest is pinned',
      /^ARG NODE_DIGEST=sha256:[0-9a-f]{64}$[\s\S]+^FROM .*\$\{BASE\} AS build$[\s\S]+^FROM \$\{BASE\}$/m,
    ],
    ['packages without their scripts', /npm install --no-save --ignore-scripts --omit=dev/],
    [
      'the program as its entry point, which a signal reaches, and its first command',
      /^ENTRYPOINT \["node", [\s\S]+^CMD \["serve"\]$/m,
    ],
    ['a signal that the relay handles', /^STOPSIGNAL SIGTERM$/m],
    ['a health check, which the compose files wait for', /^HEALTHCHECK .*\/healthz/m],
    ['a user other than root in its last stage', /^FROM \$\{BASE\}$[\s\S]+^USER node$/m],
  ])('has %s', (_, pattern) => {
    expect(dockerfile).toMatch(pattern)
  })

  it('fetches nothing beside its base and its packages, and takes no secret', () => {
    expect(dockerfile).not.toMatch(/^ADD |curl|wget|apt-get|_KEY|SECRET|PASSWORD|TOKEN/m)
  })

  it('copies only what .dockerignore lets in', () => {
    const [everything, ...kept] = read('.dockerignore').trim().split('\n')
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths = '']) => paths.split(' '))
    expect([everything, copied.filter((path) => !kept.includes(`!${path}`))]).toEqual(['*', []])
  })
})

/** A relay as a platform runs it. */
type Deployed = {
  readonly name: string
  readonly set: Readonly<Record<string, string | null>>
  /** How long the platform waits before it kills the process. */
  readonly graceMs: number
  /** Where the platform reads the metrics, and keeps the tape. */
  readonly metricsPort: number | undefined
  readonly tape: string | undefined
}

const lineIn = (text: string, name: string): string => new RegExp(`^\\s*${name} ?= ?"?([^"\\n]+)"?$`, 'm').exec(text)?.[1] ?? ''

function onFly(path: string): readonly Deployed[] {
  const text = read(path)
  const set = Object.fromEntries([...text.matchAll(/^ {2}([A-Z_]+) = "(.*)"$/gm)].map(([, name, value]) => [name, value]))
  const groups = [...text.matchAll(/^ {2}(\w+) = "--role (\w+)(?: --pre-drain (\w+))?"$/gm)]
  const own = groups.map(([, group, ROLE = '', PRE_DRAIN = '0']) => ({ group, set: { ROLE, PRE_DRAIN } }))
  return (own.length > 0 ? own : [{ group: 'relay', set: {} }]).map((process) => ({
    name: `${process.group} of ${path}`,
    set: { ...set, ...process.set },
    graceMs: durationMs(lineIn(text, 'kill_timeout')),
    metricsPort: Number(/^\[metrics\]\n {2}port = (\d+)$/m.exec(text)?.[1]),
    tape: process.group === 'edge' ? undefined : lineIn(text, 'destination'),
  }))
}

const unit = read('docs/stocktape.service')
const inSystemd: Deployed = {
  name: 'docs/stocktape.service',
  set: {},
  graceMs: durationMs(`${lineIn(unit, 'TimeoutStopSec')}s`),
  metricsPort: undefined,
  tape: undefined,
}

type Service = {
  readonly image?: string
  readonly build?: string
  readonly environment?: Readonly<Record<string, string | null>>
  readonly stop_grace_period?: string
  readonly volumes?: readonly string[]
  readonly ports?: readonly string[]
  readonly networks?: readonly string[] | Readonly<Record<string, { readonly aliases?: readonly string[] }>>
  readonly depends_on?: readonly string[] | Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck?: unknown
}
type Compose = { readonly include?: readonly string[]; readonly services: Readonly<Record<string, Service>> } & Readonly<
  Record<'volumes' | 'networks', Readonly<Record<string, unknown>> | undefined>
>
const composeFiles = ['docs/compose.yaml', 'docs/compose.single.yaml', 'docs/monitoring/compose.yaml']
const composed = (path: string): Compose => parse(read(path), { merge: true })
const [scraped] = parse(read('docs/monitoring/prometheus.yaml')).scrape_configs[0].dns_sd_configs

const inCompose = (path: string): readonly Deployed[] =>
  Object.entries(composed(path).services).flatMap(
    ([name, { build, environment = {}, stop_grace_period = '0', volumes, networks }]) => {
      if (!build) return []
      const aliases = networks && 'default' in networks ? networks.default?.aliases : undefined
      return {
        name: `${name} of ${path}`,
        set: environment,
        graceMs: durationMs(stop_grace_period),
        metricsPort: aliases?.includes(scraped.names[0]) ? scraped.port : 0,
        tape: volumes?.[0]?.split(':').at(-1),
      }
    },
  )

type Probe = { readonly httpGet: { readonly path: string; readonly port: string } }
type Container = {
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
  readonly securityContext: unknown
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
}
type Labels = Readonly<Record<string, string>>
type Resource = {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly selector: { readonly matchLabels: Labels } | Labels
    readonly serviceName?: string
    readonly ports?: readonly { readonly targetPort: string }[]
    readonly podMetricsEndpoints?: readonly { readonly port: string }[]
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[]
    readonly template?: {
      readonly metadata: { readonly labels: Labels }
      readonly spec: {
        readonly terminationGracePeriodSeconds: number
        readonly securityContext: unknown
        readonly containers: readonly [Container]
        readonly volumes: readonly { readonly name: string }[]
      }
    }
  }
}
const kubernetesFiles = ['docs/kubernetes.yaml', 'docs/kubernetes-cluster.yaml']
const resourcesIn = (path: string): readonly Resource[] => parseAllDocuments(read(path)).map((document) => document.toJS())
const podsIn = (path: string) =>
  resourcesIn(path).flatMap(({ metadata, spec: { template, ...own } }) =>
    template ? { name: metadata.name, own, labels: template.metadata.labels, ...template.spec } : [],
  )

const inKubernetes = (path: string): readonly Deployed[] =>
  podsIn(path).map(({ name, terminationGracePeriodSeconds, containers: [{ env, ports, volumeMounts }] }) => ({
    name: `${name} of ${path}`,
    set: Object.fromEntries(env.map((variable) => [variable.name, variable.value])),
    graceMs: terminationGracePeriodSeconds * 1_000,
    metricsPort: ports.find((port) => port.name === 'metrics')?.containerPort,
    tape: volumeMounts.find((mount) => mount.name === 'tape')?.mountPath,
  }))

const deployed: readonly Deployed[] = [
  inSystemd,
  ...['fly.toml', 'docs/fly-cluster.toml'].flatMap(onFly),
  ...composeFiles.flatMap(inCompose),
  ...kubernetesFiles.flatMap(inKubernetes),
]

describe.each(deployed)('$name', ({ set, graceMs, metricsPort, tape }) => {
  const effective = (name: string) => set[name] ?? settings.get(name)?.default ?? ''

  it('sets only settings', () => {
    expect(Object.keys(set).filter((name) => !settingNames.includes(name))).toEqual([])
  })

  it('is killed later than after PRE_DRAIN and DRAIN', () => {
    expect(graceMs).toBeGreaterThanOrEqual(durationMs(effective('PRE_DRAIN')) + durationMs(effective('DRAIN')) + 5_000)
  })

  it('has its tape where the image writes it, and its metrics where they are read', () => {
    if (tape !== undefined) expect(dockerfile).toContain(` DATA_DIR=${tape} `)
    if (metricsPort !== undefined) expect(metricsPort).toBe(Number(set.METRICS_PORT))
  })
})

it('each platform runs one relay, or edges and ingesters; edges report unready before they drain', () => {
  const roles = deployed.map(({ name, set }) => [name.split(' of ')[1] ?? name, set.ROLE ?? 'relay'].join(': '))
  expect(new Set(roles)).toEqual(
    new Set([
      ...['docs/stocktape.service', 'fly.toml', 'docs/compose.single.yaml', 'docs/kubernetes.yaml'].map((path) => `${path}: relay`),
      ...['docs/fly-cluster.toml', 'docs/compose.yaml', 'docs/kubernetes-cluster.yaml'].flatMap((path) =>
        ['ingest', 'edge'].map((role) => `${path}: ${role}`),
      ),
    ]),
  )
  for (const { name, set } of deployed)
    if (set.ROLE === 'edge') expect(durationMs(set.PRE_DRAIN ?? ''), name).toBeGreaterThan(1_000)
})

it('the unit for systemd allows more descriptors than MAX_CLIENTS', () => {
  expect(Number(lineIn(unit, 'LimitNOFILE'))).toBeGreaterThan(Number(settings.get('MAX_CLIENTS')?.default) + 2_000)
})

describe.each(composeFiles)('%s', (path) => {
  const { include = [], services, ...declared } = composed(path)
  const folder = path.slice(0, path.lastIndexOf('/'))
  const named = (kind: 'volumes' | 'networks') => [...Object.keys(declared[kind] ?? {}), 'default']

  it.each(Object.entries(services))('the service %s has no more rights than it needs, and limits', (_, service) => {
    expect(service).toMatchObject({
      ...{ init: true, read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] },
      ...{ pids_limit: expect.any(Number), mem_limit: expect.any(String), tmpfs: expect.arrayContaining(['/tmp']) },
      logging: { options: { 'max-size': '10m', 'max-file': '3' } },
    })
    if (!service.build) expect(service.image).toMatch(/^[a-z/]+:[\w.-]+@sha256:[0-9a-f]{64}$/)
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/)
  })

  it.each(Object.entries(services))('the service %s mounts, joins and waits for what exists', (_, service) => {
    for (const source of (service.volumes ?? [])
      .filter((volume) => volume.includes(':'))
      .map((volume) => volume.split(':')[0] ?? ''))
      if (source.startsWith('.')) expect(existsSync(`${folder}/${source}`), source).toBe(true)
      else expect(named('volumes')).toContain(source)
    const { networks = [], depends_on: needed = {} } = service
    for (const network of Array.isArray(networks) ? networks : Object.keys(networks)) expect(named('networks')).toContain(network)
    if (Array.isArray(needed)) return expect(Object.keys(services)).toEqual(expect.arrayContaining(needed))
    for (const [name, { condition }] of Object.entries(needed)) {
      expect(condition).toBe('service_healthy')
      expect(services[name]?.build ?? services[name]?.healthcheck, name).toBeDefined()
    }
  })

  it('includes files that exist', () => {
    for (const file of include) expect(existsSync(`${folder}/${file}`)).toBe(true)
  })
})

it('the load balancer of compose.yaml differs from docs/haproxy.cfg only in TLS, log and addresses', () => {
  const linesOf = (path: string) => [...read(path).matchAll(/^ *([^#\s].*)$/gm)].map(([, line = '']) => line)
  const documented = linesOf('docs/haproxy.cfg')
  expect([...new Set(linesOf('docs/compose.haproxy.cfg').filter((line) => !documented.includes(line)))]).toEqual([
    'default-server check inter 500 fall 1 rise 1 init-addr none resolvers docker',
    ...['resolvers docker', 'nameserver docker 127.0.0.11:53', 'hold valid 1s', 'bind :8080', 'server-template edge 10 edge:8080'],
  ])
})

describe.each(kubernetesFiles)('%s', (path) => {
  const resources = resourcesIn(path)
  const pods = podsIn(path)

  it('selects pods that it has, by ports that they name', () => {
    for (const { kind, spec } of resources) {
      const labels = (spec.selector.matchLabels ?? spec.selector) as Labels
      const selected = pods.filter((pod) => Object.entries(labels).every(([name, value]) => pod.labels[name] === value))
      expect(selected.length, kind).toBe(kind === 'PodMonitor' ? pods.length : 1)
      const names = [
        ...(spec.ports ?? []).map(({ targetPort }) => targetPort),
        ...(spec.podMetricsEndpoints ?? []).map(({ port }) => port),
      ]
      for (const name of names) expect(selected[0]?.containers[0].ports.map((port) => port.name)).toContain(name)
    }
    const services = resources.filter(({ kind }) => kind === 'Service').map(({ metadata }) => metadata.name)
    for (const { own } of pods) if (own.serviceName) expect(services).toContain(own.serviceName)
    const budgets = resources.filter(({ kind }) => kind === 'PodDisruptionBudget').map(({ metadata }) => metadata.name)
    expect(budgets.toSorted()).toEqual(pods.map(({ name }) => name).toSorted())
  })

  it.each(pods)('$name is probed, has no more rights than its user, and mounts what it has', (pod) => {
    const [{ livenessProbe, readinessProbe, ports, securityContext, volumeMounts, env }] = pod.containers
    expect([livenessProbe.httpGet, readinessProbe.httpGet]).toEqual([
      { path: '/healthz', port: 'http' },
      { path: '/readyz', port: 'http' },
    ])
    expect(dockerfile).toContain(` PORT=${ports.find(({ name }) => name === 'http')?.containerPort} `)
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1_000, fsGroup: 1_000 })
    expect(securityContext).toEqual({
      ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    })
    const volumes = [
      ...pod.volumes.map(({ name }) => name),
      ...(pod.own.volumeClaimTemplates ?? []).map(({ metadata }) => metadata.name),
    ]
    expect(volumes.toSorted()).toEqual(volumeMounts.map(({ name }) => name).toSorted())
    for (const { name, value } of env)
      if (name.endsWith('_FILE')) expect(read(path)).toContain(`--from-literal=${value.replace('/run/secrets/stocktape/', '')}=`)
  })
})
