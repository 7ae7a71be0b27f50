"""The pages over HTTP, a module for each: routes, forms and live updates, as HTML or JSON."""
