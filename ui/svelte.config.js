import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';

export default {
  preprocess: vitePreprocess(),
  compilerOptions: { runes: true },
  vitePlugin: {
    // Dependencies may still be written without runes.
    dynamicCompileOptions: ({ filename }) =>
      filename.includes('node_modules') ? { runes: undefined } : undefined,
  },
};
