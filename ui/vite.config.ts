import { fileURLToPath } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import tailwindcss from '@tailwindcss/vite';
import { defineConfig } from 'vitest/config';

// `npm run dev` speaks to a server that runs beside it; the token goes into the address bar as usual.
const SERVER = 'http://127.0.0.1:8000';
const toServer = { target: SERVER, changeOrigin: true, headers: { origin: SERVER } };

export default defineConfig({
  plugins: [tailwindcss(), svelte()],
  resolve: {
    alias: {
      $lib: fileURLToPath(new URL('src/lib', import.meta.url)),
      $app: fileURLToPath(new URL('src/app', import.meta.url)),
    },
    conditions: process.env.VITEST ? ['browser'] : undefined,
  },
  server: { proxy: { '/x': toServer, '/v1': toServer } },
  build: {
    target: ['safari17', 'chrome120', 'firefox121'],
    manifest: true,
    // Inlined assets would need `data:` in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  test: {
    environment: 'jsdom',
    include: ['src/**/*.test.ts', 'tests/**/*.test.ts'],
    restoreMocks: true,
  },
});
