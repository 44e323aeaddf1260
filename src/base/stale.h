/*
 * What programs that were killed left behind: files being written are called
 * NAME.PID.tmp or NAME.PID-MORE.tmp until they are whole. Those whose process
 * is gone are of no use to anyone.
 */
#ifndef PEN_BASE_STALE_H
#define PEN_BASE_STALE_H

#include <stdbool.h>

/*
 * Calls fn with the path of each entry beside `path` called NAME.PID*.SUFFIX,
 * NAME being the last part of path, whose process is no more; path "DIR/": any
 * name. Other machines write to shared file systems, too: there only what was
 * not touched for an hour counts.
 */
void pen__stale_each(const char *path, const char *suffix,
		     void (*fn)(const char *stale, void *arg), void *arg);
/* The same for files "tmp", which are removed. */
void pen__stale_remove(const char *path);

#endif
