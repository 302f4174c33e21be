/*
 * installed.h
 *		Where the module was loaded from, and where the files are that belong to it.
 *
 * A relative path begins at the data directory, the working directory of every process of
 * the server.
 */
#ifndef GEONN_INSTALLED_H
#define GEONN_INSTALLED_H

/* the engine's program */
#define GEONN_ENGINE_PROGRAM "geonn-engine"

/* The path by which this process has loaded the module. */
extern const char *geonn_module_file(void);

/*
 * The path of a file that is installed with the module, palloc()ed.  If no such file is found, the
 * path at which it should be.
 */
extern char *geonn_installed_file(const char *name);

#endif							/* GEONN_INSTALLED_H */
