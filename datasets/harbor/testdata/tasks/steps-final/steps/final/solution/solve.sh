#!/bin/bash
touch text
