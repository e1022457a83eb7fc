/** The entry of the UI: token, theme, language, then the app. */
import { QueryClient } from '@tanstack/svelte-query';
import { mount } from 'svelte';
import App from './app/App.svelte';
import { ApiError, isDesktop, token } from './lib/api';
import { adoptToken } from './lib/api/token.svelte';
import { languageFor, setLanguage } from './lib/i18n/index.svelte';
import { go, href } from './lib/router/router.svelte';
import { startTheme } from './lib/theme/theme.svelte';
import './app.css';

startTheme();
if (!isDesktop) {
  adoptToken(location, history);
  // The router read the fragment before the token was taken out of it.
  go(location.hash || href('chat'), { replace: true });
}

const cache = new QueryClient({
  defaultOptions: {
    queries: {
      // Events say when something is out of date.
      staleTime: Infinity,
      refetchOnWindowFocus: false,
      retry: (count, error) => count < 2 && error instanceof ApiError && error.status === 0,
      enabled: () => isDesktop || token.state === 'unknown',
    },
  },
});

await setLanguage(languageFor('system', navigator.languages));
const target = document.getElementById('app');
if (target) mount(App, { target, props: { cache } });
