/* Files in the kernel's page cache. */
#ifndef PEN_BASE_PAGE_CACHE_H
#define PEN_BASE_PAGE_CACHE_H

/* Takes a file out of it, as far as the kernel will; one that cannot be opened
 * is left alone. */
void pen__page_cache_drop(const char *path);

#endif
