/*
 * installed.h
 *		Where the module was loaded from, and where the engine's program is.
 */
#ifndef GEONN_INSTALLED_H
#define GEONN_INSTALLED_H

/*
 * The file of the module, by the path by which this process loaded it.  Where that is a
 * relative one, it begins at the data directory, the working directory of every process of
 * the server.
 */
extern const char *geonn_module_file(void);

/*
 * The file of the engine's program, by such a path, in memory that is palloced.  Where the
 * program is not found, that is where it should be.
 */
extern char *geonn_engine_program(void);

#endif							/* GEONN_INSTALLED_H */
