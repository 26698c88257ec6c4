// The version that a program prints for --version. Programs link weft_version, and libraries do not, so that a commit
// builds little: libraries use WEFT_VERSION.
#pragma once

#include <string_view>

namespace weft {

// Returns the version, the commit and the build type, such as "0.1.0 (commit 0123456789ab, Release)". The commit is
// "unknown" if the sources were no Git checkout.
std::string_view version_text();
// Returns the commit alone.
std::string_view version_commit();

}  // namespace weft
