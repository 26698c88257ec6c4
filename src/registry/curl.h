// libcurl helpers shared by requests and streams. Included only by http.cc and http_stream.cc.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>
#include <string_view>

#include "registry/http.h"
#include "weft/result.h"

namespace weft {

template <auto kCleanup>
struct CurlCleanup {
  template <class T>
  void operator()(T* resource) const {
    kCleanup(resource);
  }
};
using CurlHandle = std::unique_ptr<CURL, CurlCleanup<curl_easy_cleanup>>;
using CurlHeaders = std::unique_ptr<curl_slist, CurlCleanup<curl_slist_free_all>>;
using CurlMulti = std::unique_ptr<CURLM, CurlCleanup<curl_multi_cleanup>>;

void curl_start();  // initializes libcurl once per process; call it before other libcurl functions
// Sets the options common to all requests. `options` must outlive the handle.
void curl_prepare(CURL* handle, const HttpOptions& options);
// Returns the headers of a JSON request, with the token and `header` unless they are empty.
CurlHeaders curl_headers(const std::string& token, const std::string& header = {});
// Converts a libcurl error. Errc::unreachable if the request was not sent, Errc::timed_out if it was.
Error curl_error(CURL* handle, CURLcode code, std::string_view where);

}  // namespace weft
