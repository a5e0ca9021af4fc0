import { createElement, StrictMode } from 'react'
import { renderToString } from 'react-dom/server'
import { afterEach, expect, it, vi } from 'vitest'
import { StocktapeProvider, useFeed, useStock, useTape } from '../../../../src/sdk/react/index.ts'

afterEach(() => vi.restoreAllMocks())

function Page() {
  const stock = useStock('AAPLc')
  const { status, data } = useTape({ symbols: '*', types: ['transfer'], minValue: 10 })
  const { stocks, movements, updates } = data
  return `${stock.status} ${status} ${stocks.length} ${movements.length} ${updates.length} ${useFeed().phase}`
}

it('a server renders the empty state, and neither connects nor waits', () => {
  const activities = [vi.spyOn(globalThis, 'fetch'), vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'WebSocket')]
  // The page of a server has no address, with or without a relay.
  for (const props of [{}, { url: 'http://127.0.0.1:1' }]) {
    const page = createElement(StrictMode, null, createElement(StocktapeProvider, props, createElement(Page)))
    expect(renderToString(page)).toBe('loading loading 0 0 0 connecting')
  }
  for (const activity of activities) expect(activity).not.toHaveBeenCalled()
})
