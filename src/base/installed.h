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

/* Return the path by which this process has loaded the module. */
extern const char *geonn_module_file(void);

/*
 * Return the path of a file that is installed with the module, palloc()ed.  If the file is not
 * found, return the path at which it should be.
 */
extern char *geonn_installed_file(const char *name);

#endif							/* GEONN_INSTALLED_H */
