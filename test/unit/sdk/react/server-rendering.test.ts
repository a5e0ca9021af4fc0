import { createElement, StrictMode } from 'react'
import { renderToString } from 'react-dom/server'
import { afterEach, expect, it, vi } from 'vitest'
import { StocktapeProvider, useFeed, useStock, useTape } from '../../../../src/sdk/react/index.ts'
import { useBars } from '../../../../src/sdk/react/use-bars.ts'

afterEach(() => vi.restoreAllMocks())

function Page() {
  const stock = useStock('AAPLc')
  const { status, data } = useTape({ symbols: '*', types: ['transfer'], minValue: 10 })
  const { stocks, movements, updates } = data
  const bars = useBars('AAPLc', { interval: '5m' })
  const counts = [stocks.length, movements.length, updates.length, bars.data.length].join(' ')
  return `${stock.status} ${status} ${bars.status} ${counts} ${useFeed().phase} ${useBars('AAPLc', { enabled: false }).status}`
}

it('a server renders the empty state, and neither connects nor waits', () => {
  const activities = [vi.spyOn(globalThis, 'fetch'), vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'WebSocket')]
  // The page of a server has no address, with or without a relay.
  for (const props of [{}, { url: 'http://127.0.0.1:1' }]) {
    const page = createElement(StrictMode, null, createElement(StocktapeProvider, props, createElement(Page)))
    expect(renderToString(page)).toBe('loading loading loading 0 0 0 0 connecting disabled')
  }
  for (const activity of activities) expect(activity).not.toHaveBeenCalled()
})
