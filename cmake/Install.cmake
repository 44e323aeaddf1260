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
	set(PEN_SHELL ${CMAKE_BINARY_DIR}/penstock)
	add_custom_command(OUTPUT ${PEN_MAN} ${PEN_SHELL}.bash ${PEN_SHELL}.zsh
			${PEN_SHELL}.fish
		COMMAND penstock_cli --man > ${PEN_MAN}
		COMMAND penstock_cli --completion bash > ${PEN_SHELL}.bash
		COMMAND penstock_cli --completion zsh > ${PEN_SHELL}.zsh
		COMMAND penstock_cli --completion fish > ${PEN_SHELL}.fish
		DEPENDS penstock_cli VERBATIM)
	add_custom_target(pen_manual ALL DEPENDS ${PEN_MAN} ${PEN_SHELL}.bash)
	install(FILES ${PEN_MAN} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
	install(FILES ${PEN_SHELL}.bash RENAME penstock DESTINATION
		${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
	install(FILES ${PEN_SHELL}.zsh RENAME _penstock DESTINATION
		${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
	install(FILES ${PEN_SHELL}.fish DESTINATION
		${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

# The manual pages of the functions come from the comments of the header.
find_program(PEN_PYTHON3 python3)
if(PEN_PYTHON3)
	install(CODE "
		execute_process(COMMAND \"${PEN_PYTHON3}\"
			\"${CMAKE_SOURCE_DIR}/scripts/docs\" man
			\"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}\"
			OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)")
endif()

# DLIO's name for `penstock run`: scripts that call it go on working.
install(CODE "
	file(CREATE_LINK penstock
		\"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/dlio_benchmark\"
		SYMBOLIC)")
file(WRITE ${CMAKE_BINARY_DIR}/dlio_benchmark.1 ".so man1/penstock.1\n")
install(FILES ${CMAKE_BINARY_DIR}/dlio_benchmark.1
	DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
