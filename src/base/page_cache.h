/* Files in the kernel's page cache. */
#ifndef PEN_BASE_PAGE_CACHE_H
#define PEN_BASE_PAGE_CACHE_H

/* Drops a file from it, as far as the kernel allows; does nothing if the file
 * cannot be opened. */
void pen__page_cache_drop(const char *path);

#endif
