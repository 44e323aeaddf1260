/*
 * Where processes of one machine and user get a shard by name. A name is one
 * of a unix socket that no file system knows, and is gone with the process that
 * had it. Every process that has the shard opens a door of its own as long as
 * there are places, so that the name lives as long as any of them.
 */
#ifndef PEN_DDICT_NAME_SERVER_H
#define PEN_DDICT_NAME_SERVER_H

#include "base/err.h"

#define PEN_DOORS 16
#define PEN_DOOR_NAME 64 /* longest name */

struct pen_door;
/* A socket bound to place `at` of the name. PEN_AGAIN: it is taken. */
int pen__door_bind(const char *name, int at, int *sock, struct pen_err *err);
/* Hands out fd, which stays the caller's, at the socket, which does not. */
int pen__door_open(struct pen_door **out, int sock, int fd,
		   struct pen_err *err);
void pen__door_close(struct pen_door *); /* NULL ok */
/* From whoever has it at any place. PEN_ENOTFOUND: nobody. */
int pen__door_fetch(const char *name, int *fd, struct pen_err *err);
/* Letters, digits, dots, dashes. */
int pen__door_check(const char *name, struct pen_err *err);

#endif
