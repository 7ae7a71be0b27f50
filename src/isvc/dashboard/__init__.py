"""The dashboard: services in a browser, for people who would rather look than type.

Pages are rendered on the server from what an informer's cache holds, and every page can be had as JSON. `views` are
pure functions from objects to what a page shows; `cluster` keeps the objects; `pages` and `server` answer over HTTP.
"""
