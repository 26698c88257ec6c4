// What requests and streams share of libcurl. Included by http.cc and http_stream.cc alone.
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

void curl_start();  // once in a process, before anything else of libcurl
// What all requests have in common; `options` outlives the handle.
void curl_prepare(CURL* handle, const HttpOptions& options);
// JSON, and the token if there is one.
CurlHeaders curl_headers(const std::string& token, const std::string& header = {});
// Whether the request was sent decides between Errc::unreachable and timed_out.
Error curl_error(CURL* handle, CURLcode code, std::string_view where);

}  // namespace weft
