#!/bin/bash
python3 -m unittest -v test_greeting
