/* Makes names survive a power failure. */
#ifndef PEN_BASE_SYNC_H
#define PEN_BASE_SYNC_H

/*
 * Syncs the directory that holds `path`, whose name is new there; 0 or errno.
 * File systems that need no sync of directories, and directories that may not
 * be read, are not failures.
 */
int pen__sync_parent(const char *path);

#endif
