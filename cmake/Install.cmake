# What `cmake --install` puts where: the library with its header, penstock.pc
# and what find_package() looks for, the command with its manual page and completion.

install(TARGETS penstock EXPORT penstock
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
	INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS penstock_cli
	RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Run by `penstock bench dna`.
install(TARGETS doc2vec
	RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/penstock)
install(FILES ${CMAKE_SOURCE_DIR}/include/penstock.h
	DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# The prefix is known for certain only while installing (--prefix may differ
# from the configured one), so that is when penstock.pc is written.
foreach(dir LIBDIR INCLUDEDIR)
	if(IS_ABSOLUTE ${CMAKE_INSTALL_${dir}})
		set(PEN_PC_${dir} ${CMAKE_INSTALL_${dir}})
	else()
		set(PEN_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
	endif()
endforeach()
set(PEN_PC ${CMAKE_BINARY_DIR}/penstock.pc)
install(CODE "
	set(PROJECT_VERSION \"${PROJECT_VERSION}\")
	set(PROJECT_DESCRIPTION \"${PROJECT_DESCRIPTION}\")
	set(PEN_PC_LIBDIR \"\\${PEN_PC_LIBDIR}\")
	set(PEN_PC_INCLUDEDIR \"\\${PEN_PC_INCLUDEDIR}\")
	configure_file(\"${CMAKE_SOURCE_DIR}/cmake/penstock.pc.in\"
		\"${PEN_PC}\" @ONLY)")
install(FILES ${PEN_PC} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# find_package(penstock) gives penstock::penstock.
include(CMakePackageConfigHelpers)
set(PEN_CONFIG ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)
install(EXPORT penstock FILE penstock-config.cmake NAMESPACE penstock::
	DESTINATION ${PEN_CONFIG})
write_basic_package_version_file(
	${CMAKE_BINARY_DIR}/penstock-config-version.cmake
	COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/penstock-config-version.cmake
	DESTINATION ${PEN_CONFIG})

# The command prints its own manual page and completion, from the tables it
# parses with. A build that cannot run here goes without.
if(NOT CMAKE_CROSSCOMPILING AND NOT PEN_SANITIZE)
	set(PEN_MAN ${CMAKE_BINARY_DIR}/penstock.1)
	set(PEN_COMPLETION ${CMAKE_BINARY_DIR}/penstock.bash)
	add_custom_command(OUTPUT ${PEN_MAN} ${PEN_COMPLETION}
		COMMAND penstock_cli --man > ${PEN_MAN}
		COMMAND penstock_cli --completion > ${PEN_COMPLETION}
		DEPENDS penstock_cli VERBATIM)
	add_custom_target(pen_manual ALL DEPENDS ${PEN_MAN} ${PEN_COMPLETION})
	install(FILES ${PEN_MAN} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
	install(FILES ${PEN_COMPLETION} RENAME penstock DESTINATION
		${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()

# DLIO's name for `penstock run`: scripts that call it go on working.
install(CODE "
	file(CREATE_LINK penstock
		\"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/dlio_benchmark\"
		SYMBOLIC)")
