"""The explorer: pages in the browser over a store.

A page is a module with a function from the store to a struct, and a template that shows the struct. Templates escape
every value. Parts of pages are made by the same templates. Everything but keys works without script.
"""
