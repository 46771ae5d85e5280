"""The routes of the API, one noun per file; `service.api` puts them together."""
