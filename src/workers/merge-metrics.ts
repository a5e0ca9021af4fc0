/** Adds up the metrics of several processes, each in the text of Prometheus. Comments and the order are those of the first. */
export function mergeMetrics(texts: readonly string[]): string {
  const comments = new Map<string, string[]>()
  const sums = new Map<string, number>()
  for (const line of texts.flatMap((text) => text.split('\n'))) {
    if (line.startsWith('#')) {
      const [, , name = ''] = line.split(' ')
      const known = comments.get(name) ?? []
      if (!known.includes(line)) comments.set(name, [...known, line])
      continue
    }
    const at = line.lastIndexOf(' ')
    if (at > 0) sums.set(line.slice(0, at), (sums.get(line.slice(0, at)) ?? 0) + Number(line.slice(at + 1)))
  }
  const byMetric = Map.groupBy(sums, ([series]) => metricOf(series, comments))
  return [...comments]
    .flatMap(([name, lines]) => [...lines, ...(byMetric.get(name) ?? []).map(([series, sum]) => `${series} ${sum}`), ''])
    .join('\n')
}

/** The metric of a series: that of a histogram's parts is the histogram. */
function metricOf(series: string, known: ReadonlyMap<string, unknown>): string {
  const name = series.replace(/\{.*/s, '')
  return known.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '')
}
